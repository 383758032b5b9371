"""The public interface: one import per name, read by type checkers, by editors and by the lazy loader."""

# Data
from firth.data.similar_pairs import SimilarPairs as SimilarPairs
from firth.data.cooccurrence import Cooccurrence as Cooccurrence
from firth.data.corpus import Corpus as Corpus
from firth.data.examples import Examples as Examples
from firth.data.graph import Graph as Graph
from firth.data.labeled_texts import LabeledTexts as LabeledTexts
from firth.data.translation_pairs import TranslationPairs as TranslationPairs
from firth.data.questions import Questions as Questions
from firth.data.interactions import Interactions as Interactions
from firth.data.subword_tokenizer import SubwordTokenizer as SubwordTokenizer
from firth.data.subword_tokens import encode_corpus as encode_corpus
from firth.data.subwords import BPE as BPE
from firth.data.subwords import Characters as Characters
from firth.data.subwords import WordPiece as WordPiece
from firth.data.table import Table as Table
from firth.data.tagged_corpus import TaggedCorpus as TaggedCorpus
from firth.data.tagged_sentences import TaggedSentences as TaggedSentences
from firth.data.tokens import Tokens as Tokens
from firth.data.vocabulary import Vocabulary as Vocabulary

# Methods: words
from firth.words.cbow import CBOW as CBOW
from firth.words.fasttext import FastText as FastText
from firth.words.glove import GloVe as GloVe
from firth.words.pmi import PMI as PMI
from firth.words.skipgram import SkipGram as SkipGram

# Methods: documents
from firth.documents.counts import Counts as Counts
from firth.documents.doc2vec import Doc2Vec as Doc2Vec
from firth.documents.fasttext_classifier import FastTextClassifier as FastTextClassifier
from firth.documents.lsa import LSA as LSA
from firth.documents.tfidf import TfIdf as TfIdf

# Methods: graphs
from firth.graphs.deepwalk import DeepWalk as DeepWalk
from firth.graphs.node2vec import Node2Vec as Node2Vec

# Methods: recommenders
from firth.recommenders.als import ALS as ALS
from firth.recommenders.bpr import BPR as BPR
from firth.recommenders.item2vec import Item2Vec as Item2Vec
from firth.recommenders.multdae import MultDAE as MultDAE
from firth.recommenders.multvae import MultVAE as MultVAE
from firth.recommenders.rating_factors import RatingFactors as RatingFactors
from firth.recommenders.sequence_recommender import SequenceRecommender as SequenceRecommender
from firth.recommenders.two_tower import TwoTower as TwoTower

# Methods: tables
from firth.tables.autoencoder import Autoencoder as Autoencoder
from firth.tables.binary import Binary as Binary
from firth.tables.ordinal import Ordinal as Ordinal
from firth.tables.minmax import MinMax as MinMax
from firth.tables.onehot import OneHot as OneHot
from firth.tables.pca import PCA as PCA
from firth.tables.standardize import Standardize as Standardize
from firth.tables.vae import VAE as VAE

# Methods: transformers
from firth.transformers.bert import BERT as BERT
from firth.transformers.distil import Distil as Distil
from firth.transformers.gpt import GPT as GPT
from firth.transformers.seq2seq import Seq2Seq as Seq2Seq

# Methods: finetuning
from firth.finetuning.linear_classifier import LinearClassifier as LinearClassifier
from firth.finetuning.linear_regressor import LinearRegressor as LinearRegressor
from firth.finetuning.question_answerer import QuestionAnswerer as QuestionAnswerer
from firth.finetuning.text_classifier import TextClassifier as TextClassifier
from firth.finetuning.text_regressor import TextRegressor as TextRegressor
from firth.finetuning.sentence_encoder import SentenceEncoder as SentenceEncoder
from firth.finetuning.token_classifier import TokenClassifier as TokenClassifier

# Methods and models
from firth.core.data import Data as Data
from firth.core.data import FileOption as FileOption
from firth.core.errors import FirthError as FirthError
from firth.core.errors import FirthWarning as FirthWarning
from firth.core.method import Method as Method
from firth.core.model import Model as Model
from firth.core.options import option as option
from firth.core.run import Run as Run
from firth.core.saved import load as load
from firth.core.saved import verify as verify
from firth.core.text_embedder import TextEmbedder as TextEmbedder
from firth.core.train import train as train
from firth.core.vectors import Vectors as Vectors
from firth.core.vectors import odd_one_out as odd_one_out
from firth.core.vectors import similarity as similarity

# Files
from firth.formats import read_vectors as read_vectors
from firth.formats import write_vectors as write_vectors
from firth.model_files import export as export

# Search and studies
from firth.index import Index as Index
from firth.index import PostgresIndex as PostgresIndex
from firth.studies import align as align
from firth.studies import compare as compare
from firth.studies import sweep as sweep

# Packages
from firth import core as core
from firth import data as data
from firth import documents as documents
from firth import evaluate as evaluate
from firth import finetuning as finetuning
from firth import formats as formats
from firth import graphs as graphs
from firth import index as index
from firth import kernels as kernels
from firth import maps as maps
from firth import recommenders as recommenders
from firth import sklearn as sklearn
from firth import studies as studies
from firth import tables as tables
from firth import training as training
from firth import transformers as transformers
from firth import words as words

from firth.version import __version__ as __version__

__all__: list[str]
