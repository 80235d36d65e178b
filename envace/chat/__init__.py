"""Between messages and tokens: the chat layout (tokens in, tokens out) and the parser of act outputs."""
