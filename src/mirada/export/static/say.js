// The words of this page that the page of `mirada explain` has not, in English and Spanish.

import {currentLanguage, say as known} from "./words.js";

export const own = {
  en: {
    here: "Everything is computed in this page: what you type leaves your device never.", loading: "The model is being read …", ready: "", part: "Part", broken: "This browser cannot run the model: ",
    missing: "The model's files cannot be read: ", noattention: "This system has no attention: all it knows of the sentence is one vector.", file: "This page needs a web server, such as python -m http.server: browsers run no model from a file.",
  },
  es: {
    here: "Todo se calcula en esta página: lo que escribes nunca sale de tu dispositivo.", loading: "Se está leyendo el modelo …", ready: "", part: "Parte", broken: "Este navegador no puede ejecutar el modelo: ",
    missing: "No se pueden leer los archivos del modelo: ", noattention: "Este sistema no tiene atención: todo lo que sabe de la oración es un vector.", file: "Esta página necesita un servidor web, como python -m http.server: los navegadores no ejecutan modelos desde un archivo.",
  },
};

export const say = key => own[currentLanguage()][key] ?? known(key);
