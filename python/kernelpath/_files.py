"""Fitted estimators to files and from files, to pickles, and to what other programs read."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import Any, ClassVar, TypeVar

from sklearn.utils.validation import check_is_fitted

from kernelpath import _core
from kernelpath._parameters import MACHINE, RECORDED, parameters_from_json
from kernelpath._pipelines import with_scaling
from kernelpath._read import check_class_weight, check_parameters
from kernelpath._saved import MISFITS, STATE, NotHeldError, restore, to_saved
from kernelpath._shared import ESTIMATORS

__all__ = ["FilesMixin", "ModelFilesMixin", "from_libsvm", "load", "save", "to_libsvm", "to_onnx"]

Path = str | os.PathLike[str]
_Self = TypeVar("_Self", bound="FilesMixin")
_Model = TypeVar("_Model", bound="ModelFilesMixin")

_PACKED = "_kernelpath_file"  # in the state of a pickle: the bytes of a model file


class FilesMixin:
    """Files, and pickles that hold the bytes of one.

    A subclass says what a file holds of it (:meth:`_to_saved`), takes it back (:meth:`_restore`), and names the
    attributes that it then has (`_in_files`).
    """

    _in_files: ClassVar[frozenset[str]]

    def _to_saved(self, kind: type) -> _core.Saved:
        raise NotImplementedError

    def _restore(self, saved: _core.Saved) -> None:
        raise NotImplementedError

    def save(self, path: Path) -> None:
        """Write the fitted model to a file, from which :func:`kernelpath.load` has it again.

        The file is written whole or not at all: one of that name stays as it is until the new one is complete.
        Parameters that a file cannot hold, such as splitters, scorers and random generators, are written as their
        `repr`. They matter only to another fit. A model whose kernel is a function is refused.

        Parameters
        ----------
        path : str or path-like
            The file, by custom with the ending ``.kpath``.
        """
        file_of(self).save(path)

    def __copy__(self: _Self) -> _Self:
        """Make a copy that shares all values, none of which is packed for it."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Parameters as they are, and what was fitted as the bytes of a file, if one can hold it."""
        state = dict(super().__getstate__())  # type: ignore[call-overload]
        if "_kernel" not in state:  # not fitted
            return state
        try:
            saved = self._to_saved(_kind(self))
        except NotHeldError:  # a kernel that is a function, or attributes that were changed by hand
            return state
        try:
            packed = saved.to_bytes()
        except ValueError:  # names and parameters that take more than the header of a file may
            return state
        return {name: value for name, value in state.items() if name not in self._in_files} | {_PACKED: packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` gave, of this version or an older one."""
        packed = state.get(_PACKED)
        super().__setstate__({name: value for name, value in state.items() if name != _PACKED})  # type: ignore[misc]
        if packed is not None:
            restored(self, _core.Saved.from_bytes(packed))
        elif "_kernel" in state and "_function" not in state and callable(state["kernel"]):
            self._function = state["kernel"]  # of a version that read it from the parameter


class ModelFilesMixin(FilesMixin):
    """The same for estimators that predict."""

    _in_files = STATE

    def _to_saved(self, kind: type) -> _core.Saved:
        return to_saved(self, kind)

    def _restore(self, saved: _core.Saved) -> None:
        restore(self, saved)

    def slim(self: _Model) -> _Model:
        """Drop `oof_path_`, the out-of-fold values at every C, which is most of a file or pickle.

        What predicts, what was chosen, the scores and the certificates stay, and so do the out-of-fold values at the
        chosen C. With ``keep_path=False`` `fit` does not keep them in the first place.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        vars(self).pop("oof_path_", None)
        return self


def save(model: Any, path: Path) -> None:
    """Write a fitted model to a file, from which :func:`load` has it again.

    Of a ``Pipeline`` of scikit-learn that scales columns (`StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`,
    `RobustScaler`) and ends in an estimator of this library, the scaling goes into the model: what is loaded is that
    estimator, and it predicts from the columns that the pipeline takes. Other steps are refused by name.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of this library, or a fitted pipeline that ends in one.
    path : str or path-like
        The file, by custom with the ending ``.kpath``.

    Examples
    --------
    >>> import kernelpath, os, tempfile
    >>> from kernelpath.datasets import make_mixture
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = make_mixture(100, 5, random_state=0)
    >>> model = make_pipeline(StandardScaler(), kernelpath.KernelSVC(Cs=10)).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kernelpath.save(model, os.path.join(folder, "model.kpath"))
    ...     again = kernelpath.load(os.path.join(folder, "model.kpath"))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    file_of(model).save(path)


def load(path: Path) -> Any:
    """Read a fitted model from a file.

    It predicts the same to the last bit, and has the same attributes. Files of strangers are safe to read: they hold
    numbers and texts, no code, and a damaged one is an error. Parameters that the file holds only as a text, such as a
    splitter, have their defaults, and a warning says so.

    A file does not choose where it is computed with: `device` is "cpu" and `n_jobs` None until you set them, whatever
    the fit used. What it used stays on record in the file, also if the model is saved again.

    Parameters
    ----------
    path : str or path-like
        What :meth:`KernelSVC.save`, the Rust library or the ``kernelpath`` command wrote.

    Returns
    -------
    estimator
        Of the class that was saved.

    Examples
    --------
    >>> import kernelpath, os, tempfile
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(100, 5, random_state=0)
    >>> model = kernelpath.KernelSVC(Cs=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.kpath"))
    ...     again = kernelpath.load(os.path.join(folder, "model.kpath"))
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    """
    return estimator_of(_core.Saved.load(path), os.fspath(path))


def to_onnx(model: Any, float32: bool = False) -> bytes:
    """Convert a fitted model for ONNX Runtime, which then predicts without this library.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of this library, or a fitted pipeline that scales columns and ends in one, as of
        :func:`save`.
    float32 : bool, default=False
        Whether input, arithmetic and output are in single precision instead of double.

    Returns
    -------
    bytes
        An ONNX model, to be written to a file or given to ``onnxruntime.InferenceSession``.

    Examples
    --------
    >>> import kernelpath
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(100, 5, random_state=0)
    >>> model = kernelpath.KernelSVC(Cs=10).fit(X, y)
    >>> len(kernelpath.to_onnx(model)) > 1000
    True
    """
    return file_of(model).to_onnx(float32)


def to_libsvm(model: Any) -> str:
    """Convert a fitted model for LIBSVM, whose ``svm-predict`` then predicts.

    What LIBSVM has no words for, such as other kernels and losses, is refused with the reason.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library.

    Returns
    -------
    str
        The text of a model file of LIBSVM.

    Examples
    --------
    >>> import kernelpath
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(100, 5, random_state=0)
    >>> model = kernelpath.KernelSVC(Cs=10).fit(X, y)
    >>> kernelpath.to_libsvm(model).splitlines()[0]
    'svm_type c_svc'
    """
    return file_of(model).to_libsvm()


def from_libsvm(source: Path | bytes) -> Any:
    """Read a model that LIBSVM's ``svm-train`` wrote.

    It predicts as LIBSVM does, and can be saved, converted and explained as any other. It has no certificate and no
    scores, which LIBSVM does not write.

    Parameters
    ----------
    source : str, path-like or bytes
        The file, or its contents.

    Returns
    -------
    estimator
        A :class:`KernelSVC` or :class:`KernelSVR`.

    Examples
    --------
    >>> import kernelpath
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(100, 5, random_state=0)
    >>> text = kernelpath.to_libsvm(kernelpath.KernelSVC(Cs=10).fit(X, y))
    >>> kernelpath.from_libsvm(text.encode()).predict(X).shape
    (100,)
    """
    if isinstance(source, bytes):
        name, text = "the model of LIBSVM", source
    else:
        name = os.fspath(source)
        with open(source, "rb") as file:
            text = file.read()
    try:
        saved = _core.Saved.from_libsvm(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return estimator_of(saved, name)


def file_of(model: Any) -> _core.Saved:
    """What a file of a fitted estimator, or of a pipeline that ends in one, holds; an error says why there is none."""
    model = with_scaling(model, ModelFilesMixin)
    if not isinstance(model, FilesMixin):
        search = ": pass its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise TypeError(
            "a fitted estimator of kernelpath is needed, or a Pipeline of scalers that ends in one, not a "
            f"{type(model).__name__}{search}"
        )
    check_is_fitted(model)
    kind = _kind(model)
    if kind is not type(model):
        raise TypeError(
            f"a file holds an estimator of kernelpath, and {type(model).__name__} is a class of its own, which whoever "
            f"reads the file may not have: use {kind.__name__}, or pickle the model"
        )
    return model._to_saved(kind)


def estimator_of(saved: _core.Saved, name: str) -> Any:
    """The estimator that a file of that name holds."""
    import_module("kernelpath._faces")  # where all estimators are, each of which makes itself known
    name, kind = _core.shown(name), ESTIMATORS.get(saved.estimator)
    if kind is None:
        known = ", ".join(sorted(ESTIMATORS))
        raise ValueError(f"{name} holds a {saved.estimator!r}, which this version does not have; it has {known}")
    try:
        kept, lost = parameters_from_json(saved.parameters, kind)
        recorded = {of: kept[of] for of in MACHINE if isinstance(kept.get(of), str | int)}
        model = kind(**{of: value for of, value in kept.items() if of not in MACHINE})
    except MISFITS as error:
        raise ValueError(f"the parameters in {name} are not those of a {saved.estimator}: {error}") from error
    restored(model, saved)
    try:  # those of a pickle are its user's, and may have been set for another fit
        check_parameters(model)
        check_class_weight(model)
    except MISFITS as error:
        raise ValueError(f"the parameters in {name} are not those of a {saved.estimator}: {error}") from error
    setattr(model, RECORDED, recorded)
    if lost:
        lost = {_core.shown(parameter): _core.shown(value) for parameter, value in lost.items()}
        told = ", ".join(f"{parameter}={value}" for parameter, value in lost.items())
        has = "has its default" if len(lost) == 1 else "have their defaults"
        warnings.warn(
            f"{name} holds {told} as a text only: {', '.join(lost)} {has}. Predictions do not depend on it; set it "
            "before another fit",
            UserWarning,
            stacklevel=3,
        )
    return model


def restored(model: FilesMixin, saved: _core.Saved) -> None:
    """Give an estimator, whose parameters are set, what a file holds beside them. ValueError if it does not fit."""
    try:
        model._restore(saved)
    except MISFITS as error:
        raise ValueError(f"the attributes in the model file do not fit together: {error}") from error


def _kind(model: Any) -> type:
    """The class of this library that a model is of, or inherits from."""
    return next(kind for kind in type(model).__mro__ if kind in ESTIMATORS.values())
