#include "bindings/common.h"
#include "pairs.h"
#include "text.h"
#include "unicode.h"

namespace firth {
namespace {

Trim trim_named(const std::string& unit) {
    if (unit == "line") return Trim::line;
    if (unit == "block") return Trim::block;
    if (unit == "file") return Trim::file;
    throw std::invalid_argument("unit must be line, block or file; got " + unit + ".");
}

nb::dict merged_parts(Merged&& merged) {
    nb::dict parts;
    nb::list maps;
    for (auto& map : merged.maps) maps.append(owned(std::move(map)));
    parts["words"] = nb::bytes(merged.words.data(), merged.words.size());
    parts["counts"] = owned(std::move(merged.counts));
    parts["maps"] = maps;
    parts["types"] = merged.types;
    parts["tokens"] = merged.tokens;
    parts["top_count"] = merged.top_count;
    parts["dropped_types"] = merged.dropped_types;
    parts["dropped_tokens"] = merged.dropped_tokens;
    return parts;
}

// Checks that a stream of ids (including -1) stays inside the array it indexes.
template <class T>
void check_ids(const Array<int32_t>& ids, const Array<T>& indexed) {
    const int32_t* id = ids.data();
    int32_t highest = -1, lowest = 0;
    for (size_t i = 0; i < ids.shape(0); ++i) highest = std::max(highest, id[i]), lowest = std::min(lowest, id[i]);
    require(lowest >= -1 && highest < static_cast<int64_t>(indexed.shape(0)), "ids must be inside their map.");
}

}  // namespace

void bind_text(nb::module_& m) {
    nb::class_<TextEncoder>(m, "TextEncoder")
        .def(
            "__init__",
            [](TextEncoder* self, const std::string& split, bool lowercase, int slots, const std::string& unit) {
                require(slots >= 1, "an encoder needs at least one slot.");
                new (self) TextEncoder(split_named(split), lowercase, slots, trim_named(unit));
            },
            nb::arg("split"), nb::arg("lowercase"), nb::arg("slots"), nb::arg("unit") = "file")
        .def(
            "seed", [](TextEncoder& self, nb::bytes words) { self.seed({words.c_str(), words.size()}); },
            nb::arg("words"))
        .def(
            "words",
            [](const TextEncoder& self, int slot) {
                std::pair<std::string, std::vector<int64_t>> listed;
                {
                    nb::gil_scoped_release free;
                    listed = self.words(slot);
                }
                return nb::make_tuple(nb::bytes(listed.first.data(), listed.first.size()),
                                      owned(std::move(listed.second)));
            },
            nb::arg("slot"))
        .def(
            "add",
            [](TextEncoder& self, int slot, nb::bytes words, Array<int64_t> counts) {
                std::vector<int32_t> ids;
                {
                    nb::gil_scoped_release free;
                    ids = self.add(slot, words.c_str(), words.size(), counts.data(), counts.shape(0));
                }
                return owned(std::move(ids));
            },
            nb::arg("slot"), nb::arg("words"), nb::arg("counts"))
        .def(
            "encode",
            [](TextEncoder& self, Array<uint8_t> data, Array<int64_t> ends) {
                nb::gil_scoped_release free;
                self.encode(data.data(), data.shape(0), ends.data(), ends.shape(0));
            },
            nb::arg("data"), nb::arg("ends"))
        .def("stretches",
             [](nb::handle_t<TextEncoder> self) {  // (slot, view of its ids); see text.h for how long they are valid
                 const auto& encoder = nb::cast<TextEncoder&>(self);
                 nb::list stretches;
                 for (const auto& part : encoder.stretches())
                     stretches.append(
                         nb::make_tuple(part.slot, nb::ndarray<nb::numpy, const int32_t, nb::ndim<1>>(
                                                       encoder.ids(part.slot) + part.begin, {part.size}, self)));
                 return stretches;
             })
        .def("bytes", &TextEncoder::bytes, nb::arg("slot"))
        .def(
            "prune", [](TextEncoder& self, int slot) { return owned(self.prune(slot)); }, nb::arg("slot"))
        .def(
            "merge",
            [](TextEncoder& self, int64_t min_count, int64_t max_size) {
                Merged merged;
                {
                    nb::gil_scoped_release free;
                    merged = self.merge(min_count, max_size);
                }
                return merged_parts(std::move(merged));
            },
            nb::arg("min_count"), nb::arg("max_size"))
        .def("statistics", [](const TextEncoder& self) {
            return std::pair(self.statistics().invalid, self.statistics().unsegmented);
        });
    m.def(
        "tokenize",
        [](nb::bytes text, const std::string& split, bool lowercase) {
            const std::string tokens = tokenize({text.c_str(), text.size()}, split_named(split), lowercase);
            return nb::bytes(tokens.data(), tokens.size());
        },
        nb::arg("text"), nb::arg("split"), nb::arg("lowercase"));
    m.def(
        "safe_cut",
        [](Array<uint8_t> data, const std::string& split) {
            return safe_cut(data.data(), data.shape(0), split_named(split));
        },
        nb::arg("data"), nb::arg("split"));
    m.def(
        "line_ends", [](Array<uint8_t> data) { return owned(line_ends(data.data(), data.shape(0))); }, nb::arg("data"));
    m.def(
        "paragraph_ends",
        [](Array<uint8_t> data, int state) {
            auto ends = owned(paragraph_ends(data.data(), data.shape(0), state));
            return nb::make_tuple(ends, state);
        },
        nb::arg("data"), nb::arg("state"));
    m.def(
        "translate",
        [](Array<int32_t> ids, Array<int32_t> map, Output<int32_t> out, Output<int64_t> ends) {
            require(out.shape(0) >= ids.shape(0) && ends.shape(0) >= ids.shape(0),
                    "out and ends must be at least as long as ids.");
            check_ids(ids, map);
            nb::gil_scoped_release free;
            const auto written = translate(ids.data(), ids.shape(0), map.data(), out.data(), ends.data());
            return std::pair(written.ids, written.documents);
        },
        nb::arg("ids"), nb::arg("map"), nb::arg("out"), nb::arg("ends"));
    nb::class_<PairCounter>(m, "PairCounter")
        .def(nb::init<size_t>(), nb::arg("max_bytes"))
        .def(
            "add",
            [](PairCounter& self, Array<int32_t> ids, Array<int32_t> map, Array<uint8_t> keep) {
                check_ids(ids, map);
                check_ids(map, keep);
                nb::gil_scoped_release free;
                self.add(ids.data(), ids.shape(0), map.data(), keep.data());
            },
            nb::arg("ids"), nb::arg("map"), nb::arg("keep"))
        .def(
            "pairs",
            [](const PairCounter& self, int64_t min_count) {
                Pairs pairs = self.pairs(min_count);
                return nb::make_tuple(owned(std::move(pairs.first)), owned(std::move(pairs.second)),
                                      owned(std::move(pairs.count)));
            },
            nb::arg("min_count"))
        .def("dropped", &PairCounter::dropped);
    nb::class_<PairJoiner>(m, "PairJoiner")
        .def(
            "__init__",
            [](PairJoiner* self, Array<int32_t> first, Array<int32_t> second, Array<int32_t> joined) {
                require(first.shape(0) == second.shape(0) && first.shape(0) == joined.shape(0),
                        "first, second and joined must have the same length.");
                new (self) PairJoiner(first.data(), second.data(), joined.data(), first.shape(0));
            },
            nb::arg("first"), nb::arg("second"), nb::arg("joined"))
        .def(
            "join",
            [](PairJoiner& self, Array<int32_t> ids, Array<int32_t> map, Output<int32_t> out) {
                require(out.shape(0) > ids.shape(0), "out must be longer than ids by at least one.");
                check_ids(ids, map);
                nb::gil_scoped_release free;
                return self.join(ids.data(), ids.shape(0), map.data(), out.data());
            },
            nb::arg("ids"), nb::arg("map"), nb::arg("out"));
    m.def("unicode_version", [] { return unicode().version; });
    m.def("unicode_tables", [] {  // class of each code point, its lower case
        const auto& tables = unicode();
        return nb::make_tuple(owned(std::vector<uint8_t>(tables.classes, tables.classes + kCodePoints)),
                              owned(std::vector<int32_t>(tables.lower, tables.lower + kCodePoints)));
    });
}

}  // namespace firth
