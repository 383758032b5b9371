// Shared by all bindings: array types, checks, and work without the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <tuple>

#include "scan.h"

namespace firth {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AliasTable = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Dense = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
auto owned(std::vector<T>&& values) {
    auto* data = new std::vector<T>(std::move(values));
    nb::capsule owner(data, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data->data(), {data->size()}, owner);
}

inline void require(bool holds, const char* rule) {
    if (!holds) throw std::invalid_argument(rule);
}

inline void check_starts(const Array<int64_t>& starts, size_t entries) {
    require(starts.shape(0) >= 1 && starts.data()[0] == 0, "starts must begin with 0.");
    for (size_t r = 1; r < starts.shape(0); ++r)
        require(starts.data()[r - 1] <= starts.data()[r], "starts must not decrease.");
    require((size_t)starts.data()[starts.shape(0) - 1] == entries, "the last start must be the number of entries.");
}

inline void check_columns(const Array<int32_t>& columns, int64_t count) {
    int32_t high = -1, low = 0;
    for (size_t i = 0; i < columns.shape(0); ++i)
        high = std::max(high, columns.data()[i]), low = std::min(low, columns.data()[i]);
    require(low >= 0 && high < count, "columns must be inside the matrix.");
}

inline Split split_named(const std::string& name) {
    if (name == "words") return Split::words;
    if (name == "whitespace") return Split::whitespace;
    if (name == "characters") return Split::characters;
    if (name == "separated") return Split::separated;
    if (name == "gpt2") return Split::gpt2;
    if (name == "bert") return Split::bert;
    throw std::invalid_argument("split must be words, whitespace, characters, separated, gpt2 or bert; got " + name +
                                ".");
}

// Runs work without the GIL; system errors such as a full disk become OSError.
template <class Work>
auto unlocked_on_disk(Work work) {
    try {
        nb::gil_scoped_release unlocked;
        return work();
    } catch (const std::system_error& error) {
        errno = error.code().value();
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
}

void bind_bags(nb::module_& m);
void bind_classify(nb::module_& m);
void bind_cooccur(nb::module_& m);
void bind_encoder(nb::module_& m);
void bind_glove(nb::module_& m);
void bind_recommenders(nb::module_& m);
void bind_predict(nb::module_& m);
void bind_product(nb::module_& m);
void bind_search(nb::module_& m);
void bind_sparse(nb::module_& m);
void bind_subwords(nb::module_& m);
void bind_text(nb::module_& m);
void bind_tokenizers(nb::module_& m);
void bind_walks(nb::module_& m);
void bind_decoder(nb::module_& m);

}  // namespace firth
