"""Four experiments on one question: what does a fixed vector cost, and what does attention buy?"""
