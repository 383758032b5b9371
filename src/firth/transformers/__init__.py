"""BERT, GPT and encoder-decoders: training, use, and the folders of other libraries."""
