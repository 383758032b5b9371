"""Errors and warnings that users can act on, each with a stable code for programs and tests."""

from __future__ import annotations

from typing import Any

#: Every code and its meaning. Codes are part of the interface and keep their meaning; messages may be reworded.
CODES = {
    "address_in_use": "The server cannot listen on this address.",
    "ambiguous_layout": "A file whose layout is ambiguous and has to be specified.",
    "conflicting_options": "Options or arguments that cannot be combined.",
    "damaged_checkpoint": "A checkpoint whose files are damaged or inconsistent.",
    "damaged_file": "A file that is truncated or contradicts its header.",
    "damaged_index": "An index folder whose files contradict each other.",
    "damaged_model": "A model folder whose files contradict each other.",
    "database": "The database refused the operation or cannot be reached.",
    "diverged": "The loss became NaN or infinite.",
    "duplicate_name": "A name, key or column that occurs twice where it must be unique.",
    "empty_data": "The data are empty: no rows, texts or pairs.",
    "empty_vocabulary": "No word reaches min_count.",
    "fault": "A defect in Firth.",
    "forbidden": "The server does not accept this request from this origin, host or key.",
    "hash_mismatch": "A file that was changed after it was written.",
    "incompatible_start": "The model given as start does not fit the method.",
    "incomplete_model": "A model folder that lacks a file or an array.",
    "interrupted": "The command was stopped by Ctrl-C or SIGTERM.",
    "invalid_encoding": "Text that is not valid UTF-8.",
    "invalid_filter": "A where expression that cannot be read or compared.",
    "invalid_request": "An HTTP request that is not valid.",
    "invalid_tokenizer": "A tokenizer that is damaged or belongs to another model.",
    "invalid_type": "A value of the wrong type.",
    "invalid_value": "A value outside the range or the choices of its option.",
    "locked": "Another process is writing to the same folder.",
    "lost_process": "A process that trained together with others was killed or cannot be reached.",
    "malformed_data": "A line, row or cell of a data file that cannot be read.",
    "missing_mask": "A text without a mask token to fill.",
    "missing_method": "The method is not part of this installation.",
    "missing_model": "The operation needs the model that computed the vectors.",
    "missing_option": "An option or argument that is required here.",
    "missing_package": "An optional package is not installed.",
    "missing_start": "The method needs a pre-trained model (start), and none was given.",
    "missing_tokenizer": "The model was trained with a function as its tokenizer, which was not passed to load.",
    "missing_value": "A missing cell where a value is required.",
    "model_mismatch": "Vectors of different models cannot be compared.",
    "no_cluster": "The cluster cannot be reached, or refused the connection.",
    "no_gpu": "device=cuda was requested, but there is no usable GPU.",
    "no_hashes": "A folder written by another library has no hashes to check.",
    "no_variation": "All rows are equal, so there is nothing to learn or compare.",
    "non_finite": "NaN or infinity where finite numbers are required.",
    "not_found": "A file, folder, model or index that does not exist.",
    "other_run": "The output folder belongs to another run, model or index.",
    "not_shared": "A path that a worker does not see as the driver does.",
    "nothing_learned": "The held-out score is not clearly better than a trivial baseline.",
    "operating_system": "The operating system refused a file or network operation.",
    "out_of_memory": "The result would not fit into memory.",
    "out_of_range": "A number too large or too small for the dtype that stores it.",
    "output_exists": "The output exists and would be overwritten.",
    "output_is_input": "The output is one of the inputs.",
    "overloaded": "The server's queue is full; send the request again later.",
    "shape_mismatch": "Arrays or lists whose lengths or shapes do not agree.",
    "sweep_failed": "No trial of a sweep gave a score.",
    "text_too_long": "A text with more tokens than the model has positions.",
    "timeout": "The request did not arrive, or was not answered, in time.",
    "too_few": "Fewer rows, labels, keys or models than are needed.",
    "too_large": "More than a limit allows.",
    "unavailable": "The server is stopping, or the model cannot be opened now.",
    "unknown_category": "A category that was not seen in training.",
    "unknown_column": "A column that does not exist, or has to be named.",
    "unknown_format": "A file name that names no format Firth reads or writes.",
    "unknown_key": "A word, node, item or other key that the table does not have.",
    "unknown_method": "A method that does not exist.",
    "unknown_option": "An option that does not exist.",
    "unknown_table": "A table of vectors that the model does not have.",
    "unknown_token": "A token or token id that the tokenizer does not have.",
    "unreadable_file": "A file that the operating system does not let Firth read.",
    "unsafe_output": "The output folder holds files that Firth did not write and will not replace.",
    "unsafe_pickle": "A pickle, which Firth does not open because it could run code.",
    "unsupported_architecture": "A network architecture, activation or module that Firth does not have.",
    "unsupported_cluster": "The method or the data cannot be computed by the workers of a cluster.",
    "unsupported_device": "The method or setting does not run on this device.",
    "unsupported_format": "A format version that this Firth does not read.",
    "unsupported_model": "The model lacks the ability that was asked for.",
    "unsupported_start": "The method cannot continue from a model.",
    "unwritable_file": "A file that the operating system does not let Firth write.",
    "usage": "A command line that does not fit the command.",
    "version_mismatch": "Driver and workers have different versions of Firth or Python.",
    "weaker_than_baseline": "A simple baseline has a better held-out score than the model.",
    "weak_key": "An API key that is missing or too short.",
    "worker_died": "Workers died again and again while they computed one shard.",
    "wrong_input": "An input of another kind than the operation takes.",
    "wrong_token": "A cluster refuses the authentication token.",
    "zero_vector": "A zero vector, which has no direction.",
}


class FirthError(ValueError):
    """An error that the user can correct. The message says what is wrong, what was expected, and what to do.

    `code` is one of `CODES`; `values` fill in the template (`str.format`), which is used as it is if there are none.
    The command line prints the message without a traceback.
    """

    def __init__(self, code: str, template: str, /, **values: Any) -> None:
        super().__init__(template.format(**values) if values else template)
        self.code, self.template, self.values = code, template, values

    def within(self, folder: object) -> FirthError:
        """The same error with the folder it concerns before its message."""
        values = {**self.values, "folder": folder}
        return rebuild_error(type(self), f"{folder}: {self}", {**self.__dict__, "values": values})

    def _renaming(self, old: str, new: str) -> FirthError:
        """The same error with another name of a path, in the message and in the values."""
        values = {
            name: value if old not in str(value) else str(value).replace(old, new)
            for name, value in self.values.items()
        }
        return rebuild_error(type(self), str(self).replace(old, new), {**self.__dict__, "values": values})

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild_error, (type(self), str(self), self.__dict__)


def rebuild_error(kind: type[FirthError], message: str, state: dict[str, Any]) -> FirthError:
    """Return an error that was raised in another process, whatever its constructor takes."""
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class FirthWarning(UserWarning):
    """A warning about dropped, truncated or unusual data; the text says what and how much."""

    def __init__(self, text: str, code: str = "note") -> None:
        super().__init__(text)
        self.code = code
