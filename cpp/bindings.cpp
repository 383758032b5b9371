// The only file that knows nanobind: arrays in, arrays out, the GIL released while kernels work.
#include "cpu.h"
#include "text.h"
#include "unicode.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <thread>
#include <utility>

namespace nb = nanobind;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Numpy = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// A NumPy array that owns what `values` held.
template <class T>
Numpy<T> give(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Numpy<T>(kept->data(), {kept->size()}, owner);
}

firth::Split split_named(const std::string& name) {
    if (name == "words") return firth::Split::words;
    if (name == "whitespace") return firth::Split::whitespace;
    if (name == "characters") return firth::Split::characters;
    if (name == "separated") return firth::Split::separated;
    throw std::invalid_argument("split must be words, whitespace, characters or separated; got " + name + ".");
}

nb::dict merged_parts(firth::Merged&& merged) {
    nb::dict parts;
    nb::list maps;
    for (auto& map : merged.maps) maps.append(give(std::move(map)));
    parts["words"] = nb::bytes(merged.words.data(), merged.words.size());
    parts["counts"] = give(std::move(merged.counts));
    parts["maps"] = maps;
    parts["types"] = merged.types;
    parts["tokens"] = merged.tokens;
    parts["top_count"] = merged.top_count;
    parts["dropped_types"] = merged.dropped_types;
    parts["dropped_tokens"] = merged.dropped_tokens;
    return parts;
}

void bind_text(nb::module_& m) {
    using firth::TextEncoder;
    nb::class_<TextEncoder>(m, "TextEncoder")
        .def("__init__", [](TextEncoder* self, const std::string& split, bool lowercase, int slots) {
            new (self) TextEncoder(split_named(split), lowercase, slots);
        })
        .def("seed", [](TextEncoder& self, nb::bytes words) { self.seed({words.c_str(), words.size()}); })
        .def("encode", [](TextEncoder& self, In<uint8_t> data, In<int64_t> ends) {
            nb::gil_scoped_release free;
            self.encode(data.data(), data.shape(0), ends.data(), ends.shape(0));
        })
        .def("ids", [](nb::handle_t<TextEncoder> self, int slot) {  // a view, valid until the next encode
            size_t size = 0;
            const int32_t* ids = nb::cast<TextEncoder&>(self).ids(slot, &size);
            return Numpy<const int32_t>(ids, {size}, self);
        })
        .def("bytes", &TextEncoder::bytes)
        .def("prune", [](TextEncoder& self, int slot) { return give(self.prune(slot)); })
        .def("merge", [](TextEncoder& self, int64_t min_count, int64_t max_size) {
            firth::Merged merged;
            {
                nb::gil_scoped_release free;
                merged = self.merge(min_count, max_size);
            }
            return merged_parts(std::move(merged));
        })
        .def("facts", [](const TextEncoder& self) {
            return std::pair(self.facts().invalid, self.facts().unsegmented);
        });
    m.def("tokenize", [](nb::bytes text, const std::string& split, bool lowercase) {
        const std::string tokens = firth::tokenize({text.c_str(), text.size()}, split_named(split), lowercase);
        return nb::bytes(tokens.data(), tokens.size());
    });
    m.def("safe_cut", [](In<uint8_t> data, const std::string& split) {
        return firth::safe_cut(data.data(), data.shape(0), split_named(split));
    });
    m.def("line_ends", [](In<uint8_t> data) { return give(firth::line_ends(data.data(), data.shape(0))); });
    m.def("paragraph_ends", [](In<uint8_t> data, int state) {
        auto ends = give(firth::paragraph_ends(data.data(), data.shape(0), state));
        return nb::make_tuple(ends, state);
    });
    m.def("translate", [](In<int32_t> ids, In<int32_t> map, Out<int32_t> out, Out<int64_t> ends) {
        if (out.shape(0) < ids.shape(0) || ends.shape(0) < ids.shape(0))
            throw std::invalid_argument("translate needs room for every id in both outputs.");
        nb::gil_scoped_release free;
        const auto written = firth::translate(ids.data(), ids.shape(0), map.data(), out.data(), ends.data());
        return std::pair(written.ids, written.documents);
    });
    m.def("unicode_tables", [] {  // class of each code point, its lower case, the Unicode version
        const auto& tables = firth::unicode();
        const std::vector<uint8_t> classes(tables.classes, tables.classes + firth::kCodePoints);
        const std::vector<int32_t> lower(tables.lower, tables.lower + firth::kCodePoints);
        return nb::make_tuple(give(std::vector<uint8_t>(classes)), give(std::vector<int32_t>(lower)), tables.version);
    });
}

}  // namespace

NB_MODULE(_native, m) {
    m.def("instruction_sets", &firth::instruction_sets);
    m.def("chosen_isa", [] { return firth::chosen_isa(); });
    bind_text(m);
}
