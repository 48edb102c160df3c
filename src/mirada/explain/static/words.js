// Every word of the page in English and Spanish. tests/explain/test_page.py holds that both have the same, and that
// every meaning and phrase of the trace's legend has its Spanish.

export const words = {
  en: {
    skip: "to the result", theme: "light / dark", other: "español", sentence: "Sentence", system: "System", beside: "Beside it", beam: "Beam", go: "Write",
    token: "Token of this service", examples: "examples", player: "steps", first: "first step", back: "step back", forward: "step on", play: "▶ play", pause: "❚❚ pause",
    speed: "speed", join: "join pieces into words", step: "step", of: "of", source: "Read", output: "Written", none: "nothing", unseen: "never seen in training",
    drawing: "The system at this step: choose a part", numbers: "numbers", raw: "raw numbers", attention: "Attention: a row a written word", head: "shown",
    mean: "mean of the last layer's heads", layer: "layer", headname: "head", candidates: "What could come next", tree: "The beam as a tree", best: "Outputs, best first",
    score: "score", given: "given", chosen: "chosen", force: "force", forbid: "forbid", intervene: "Intervene", before: "as it is", after: "after", reset: "undo",
    uniform: "look everywhere alike", diagonal: "look straight on", shuffled: "shuffle the weights", fromhere: "from this step on", weights: "Weights of this step", apply: "use these weights",
    drop: "leave out head", feeding: "without input feeding", share: "Share", html: "page (HTML)", svg: "map (SVG)", png: "map (PNG)", json: "numbers (JSON)",
    needsmodel: "This page holds the numbers of one sentence and no model. To change them: mirada serve FOLDER.",
    noattention: "The classic system has no attention: all it knows of the sentence is one vector.", oldlooks: "The old state looks: the attention is computed from the state before this word.",
    newlooks: "The new state looks: the state steps on first, then looks.", heads: "Every head of every layer looks for itself; shown is the mean of the last layer's.",
    neck: "Everything must pass through this vector.", unfinished: "stopped at the limit", wait: "writing …", empty: "Type a sentence.", busy: "The service does not answer: ",
    footer: "mirada: sequence-to-sequence models one can look into.", docs: "HTTP interface", length: "length", here: "this is that file", edited: "changed: ", same: "The output is the same.", differs: "The output is another one.", looksat: "looks at",
  },
  es: {
    skip: "al resultado", theme: "claro / oscuro", other: "English", sentence: "Oración", system: "Sistema", beside: "A su lado", beam: "Haz", go: "Escribir",
    token: "Token de este servicio", examples: "ejemplos", player: "pasos", first: "primer paso", back: "un paso atrás", forward: "un paso adelante", play: "▶ seguir", pause: "❚❚ pausa",
    speed: "velocidad", join: "unir los tokens en palabras", step: "paso", of: "de", source: "Leído", output: "Escrito", none: "nada", unseen: "nunca vista en el entrenamiento",
    drawing: "El sistema en este paso: elige una parte", numbers: "números", raw: "números sin más", attention: "Atención: una fila por palabra escrita", head: "se muestra",
    mean: "media de las cabezas de la última capa", layer: "capa", headname: "cabeza", candidates: "Lo que podría seguir", tree: "El haz como árbol", best: "Salidas, la mejor primero",
    score: "puntuación", given: "dada", chosen: "elegida", force: "forzar", forbid: "prohibir", intervene: "Intervenir", before: "como es", after: "después", reset: "deshacer",
    uniform: "mirar a todo por igual", diagonal: "mirar en orden", shuffled: "barajar los pesos", fromhere: "desde este paso", weights: "Pesos de este paso", apply: "usar estos pesos",
    drop: "omitir la cabeza", feeding: "sin input feeding", share: "Compartir", html: "página (HTML)", svg: "mapa (SVG)", png: "mapa (PNG)", json: "números (JSON)",
    needsmodel: "Esta página guarda los números de una oración y ningún modelo. Para cambiarlos: mirada serve CARPETA.",
    noattention: "El sistema clásico no tiene atención: todo lo que sabe de la oración es un vector.", oldlooks: "Mira el estado viejo: la atención se calcula con el estado anterior a esta palabra.",
    newlooks: "Mira el estado nuevo: primero avanza el estado, después mira.", heads: "Cada cabeza de cada capa mira por su cuenta; se muestra la media de la última capa.",
    neck: "Todo debe pasar por este vector.", unfinished: "detenida en el límite", wait: "escribiendo …", empty: "Escribe una oración.", busy: "El servicio no responde: ",
    footer: "mirada: modelos sequence-to-sequence que se pueden mirar por dentro.", docs: "interfaz HTTP", length: "longitud", here: "es este archivo", edited: "cambiado: ", same: "La salida es la misma.", differs: "La salida es otra.", looksat: "mira a",
  },
};

// The legend's meanings in Spanish; its English is the trace's own.
export const meanings = {
  "embeddings of the source tokens": "incrustaciones de los tokens de entrada", "states of an encoder layer": "estados de una capa del codificador",
  "what is read last, by direction": "lo último que se lee, en cada dirección", "its memory cell": "su celda de memoria", "the encoder's states": "los estados del codificador",
  "what the score compares with": "con lo que compara la puntuación", "the whole source in one vector": "toda la entrada en un solo vector",
  "the decoder's first state": "el primer estado del decodificador", "the decoder's first memory cell": "la primera celda de memoria del decodificador",
  "embedding of the previous token": "incrustación del token anterior", "the state before, of the top layer": "el estado anterior, de la capa superior",
  "the attentional state before": "el estado oculto de atención anterior", "the decoder's state": "el estado del decodificador", "the decoder's memory cell": "la celda de memoria del decodificador",
  "what the output layer reads": "lo que lee la capa de salida", "the attentional state": "el estado oculto de atención", "scores": "puntuaciones", "attention weights": "pesos de atención", "the context": "el contexto",
  "embeddings of the source tokens with their places": "incrustaciones de los tokens de entrada con sus lugares", "scores of the source with itself": "puntuaciones de la entrada consigo misma",
  "weights of the source over itself": "pesos de la entrada sobre sí misma", "what each head saw": "lo que vio cada cabeza", "self-attention": "autoatención", "feed-forward layer": "capa feed-forward",
  "what an encoder layer gives": "lo que da una capa del codificador", "the source's keys for a decoder layer": "las claves de la entrada para una capa del decodificador",
  "the source's values for a decoder layer": "los valores de la entrada para una capa del decodificador", "embedding of the previous token with its place": "incrustación del token anterior con su lugar",
  "scores with the tokens so far": "puntuaciones con los tokens hasta ahora", "weights over the tokens so far": "pesos sobre los tokens hasta ahora", "what each head saw of them": "lo que vio de ellos cada cabeza",
  "scores with the source": "puntuaciones con la entrada", "what each head saw of the source": "lo que vio de la entrada cada cabeza", "what a decoder layer gives": "lo que da una capa del decodificador",
  "attention weights, for maps": "pesos de atención, para los mapas",
  "weights of all steps before": "pesos de todos los pasos anteriores", "what is attended to again": "lo que se vuelve a atender", "the middle of the window": "el centro de la ventana",
  "what the weights are multiplied by": "aquello por lo que se multiplican los pesos", "the context of copying": "el contexto de la copia", "how far the decoder speaks for itself": "hasta qué punto habla el decodificador por sí mismo",
  "what copying gives each source token": "lo que la copia da a cada token de entrada", "what is written next": "lo que se escribe a continuación",
};

// Words inside the legend's equations, and in how an output was found; longest first.
export const phrases = [
  ["W_a h_j, with W_a's columns for h_j", "W_a h_j, con las columnas de W_a para h_j"], ["mean over the heads of", "media sobre las cabezas de"], ["softmax over k of", "softmax sobre k de"], ["softmax over j of", "softmax sobre j de"],
  ["its neighbour's state", "el estado de su vecino"], ["words read in reverse", "con las palabras leídas al revés"], ["after a given beginning", "tras un comienzo dado"], ["of the last layer", "de la última capa"], ["all heads'", "de todas las cabezas"],
  ["of the steps", "de los pasos"], ["of head", "de la cabeza"], ["over the j where", "sobre los j con"], ["over the k where", "sobre los k con"], ["where", "con"],
  ["source token", "token de entrada"], ["output token", "token de salida"], ["given output", "salida dada"], ["beam search", "búsqueda en haz"], ["hypotheses", "hipótesis"], ["sampling", "muestreo"], ["greedy", "voraz"], ["each", "cada uno"],
];

let language = "en";
export const setLanguage = value => { language = value in words ? value : "en"; };
export const currentLanguage = () => language;
export const say = key => words[language][key] ?? key;
export const meaning = text => language === "es" ? meanings[text] ?? text : text;
export const phrase = text => language === "es" ? phrases.reduce((now, [english, spanish]) => now.split(english).join(spanish), text) : text;
