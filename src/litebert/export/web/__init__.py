"""A model as a folder of files for any web host: the page, the int8 graph, a tokenizer in JavaScript."""
