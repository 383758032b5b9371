// The module `_native`. Only the files in this folder depend on Python. Kernels take arrays, and the GIL is released
// while they run.
#include "bindings/common.h"
#include "cpu.h"

NB_MODULE(_native, m) {
    m.def("instruction_sets", &firth::instruction_sets);
    m.def("active_isa", [] { return firth::active_isa(); });
    firth::bind_bags(m);
    firth::bind_classify(m);
    firth::bind_cooccur(m);
    firth::bind_encoder(m);
    firth::bind_glove(m);
    firth::bind_recommenders(m);
    firth::bind_predict(m);
    firth::bind_product(m);
    firth::bind_search(m);
    firth::bind_sparse(m);
    firth::bind_subwords(m);
    firth::bind_text(m);
    firth::bind_tokenizers(m);
    firth::bind_walks(m);
    firth::bind_decoder(m);
}
