"""Families of networks of other libraries: one file per family, with its config keys and the names of its arrays."""

from firth.transformers.families.albert import ALBERT
from firth.transformers.families.bart import BART
from firth.transformers.families.bert import BERT
from firth.transformers.families.deberta import DEBERTA
from firth.transformers.families.distilbert import DISTILBERT
from firth.transformers.families.electra import ELECTRA
from firth.transformers.families.family import Family
from firth.transformers.families.gemma import GEMMA2, GEMMA3
from firth.transformers.families.gpt2 import GPT2
from firth.transformers.families.llama import LLAMA, QWEN2, QWEN3
from firth.transformers.families.marian import MARIAN
from firth.transformers.families.modernbert import MODERNBERT
from firth.transformers.families.mpnet import MPNET
from firth.transformers.families.nomic_bert import NOMIC_BERT
from firth.transformers.families.roberta import CAMEMBERT, ROBERTA, XLM_ROBERTA
from firth.transformers.families.t5 import T5, T5_ENCODER

#: Encoders by model_type.
ENCODERS: dict[str, Family] = {
    family.model_type: family
    for family in (
        BERT, ROBERTA, XLM_ROBERTA, CAMEMBERT, ELECTRA, DISTILBERT, MPNET, MODERNBERT, NOMIC_BERT, ALBERT,
        DEBERTA, T5_ENCODER,
    )
}  # fmt: skip
#: Decoders by model_type.
DECODERS: dict[str, Family] = {family.model_type: family for family in (GPT2, LLAMA, QWEN2, QWEN3, GEMMA2, GEMMA3)}
#: Encoder-decoders by model_type.
ENCODER_DECODERS: dict[str, Family] = {family.model_type: family for family in (T5, BART, MARIAN)}
