"""Settings of the training loop."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from litebert.settings import Settings
from litebert.train.batch_ramp import BatchRampSettings, check_ramp


class GuardSettings(Settings):
    """When training counts as diverged or collapsed, and what is done about it."""

    enabled: bool = True
    """Look for collapse; non-finite steps are skipped and counted in any case."""
    nonfinite_limit: int = Field(default=3, ge=0)
    """Bad steps in a row that are skipped; one more goes back to the last good state."""
    rollback_limit: int = Field(default=3, ge=0)
    """Times that training goes back; one more stops it."""
    rollback_lr_factor: float = Field(default=0.5, gt=0, le=1)
    """The learning rate is multiplied by this at each time that training goes back."""
    explode_factor: float = Field(default=1000.0, gt=1)
    """A gradient norm above this many times the recent median is a bad step."""
    chance_tolerance: float = Field(default=0.02, gt=0, lt=1)
    """A loss within this fraction of the best constant answer's loss is at chance."""
    chance_evaluations: int = Field(default=3, ge=1)
    """Evaluations in a row without any sign of learning that confirm a collapse."""
    chance_steps: int = Field(default=100, ge=10)
    """Steps in one window of the mean training loss; two flat windows at chance are suspect.
    No collapse is confirmed within so many steps after the warm-up, not even at the end."""
    min_progress_fraction: float = Field(default=0.5, ge=0, le=1)
    """Part of the schedule that must have passed before a collapse is confirmed: models trained
    from random weights may stay at chance for long and then learn."""
    on_collapse: Literal["stop", "warn"] = "stop"
    """Stop with the evidence, so that a restart can follow, or only report it. A run that had
    learned before is never thrown away: it ends early with its best weights."""
    restarts: int = Field(default=0, ge=0)
    """Fresh starts with another seed and a lower learning rate after a collapse."""
    restart_lr_factor: float = Field(default=0.5, gt=0, le=1)
    """The learning rate is multiplied by this at each fresh start."""


class ShallowStart(Settings):
    """Begin at fewer depths: cheap steps first, since the shared block is the same at any depth.

    Source: Lan et al. 2020, footnote 5: the 12-layer xxlarge was started from a 6-layer one.
    """

    depth: int = Field(ge=1, le=256)
    """Depths that run in the beginning."""
    fraction: float = Field(default=0.5, gt=0, lt=1)
    """Part of the schedule after which all depths run."""


class AveragingSettings(Settings):
    """What is evaluated and saved is a mean of the weights over the steps, not the last ones."""

    kind: Literal["ema", "swa"] = "ema"
    """"ema": a moving mean that forgets (Polyak and Juditsky 1992); "swa": the plain mean over all
    steps since the start (Izmailov et al. 2018)."""
    start_fraction: float = Field(default=0.5, ge=0, lt=1)
    """Part of the schedule after which averaging begins."""
    decay: float = Field(default=0.99, gt=0, lt=1)
    """ema: what is kept of the mean at each step, at most (1 + n) / (10 + n) at the n-th."""
    every_steps: int = Field(default=1, ge=1)
    """Steps from one set of weights that counts to the next."""


class TrainSettings(Settings):
    """How a model is trained. A step is one optimizer update."""

    epochs: float = Field(default=3.0, gt=0, le=1_000_000)
    """Passes over the training data; ignored when `max_steps` is given."""
    max_steps: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """Optimizer updates; None: from `epochs`."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Time budget, evaluations included; the schedule is shortened so that it still ends well.
    A run with a budget is not repeatable bit for bit."""
    batch_size: int = Field(default=32, ge=1, le=1_000_000)
    """Examples per step."""
    batch_ramp: BatchRampSettings | None = None
    """Begin with fewer examples per step; None: `batch_size` from the first step on."""
    micro_batch_tokens: int = Field(default=4096, ge=1, le=100_000_000)
    """Most real tokens per forward pass; a step is cut into as many passes as that takes."""
    learning_rate: float = Field(default=5e-5, gt=0, lt=1)
    """Peak learning rate, at `lr_reference_batch_size` where `lr_scaling` is on."""
    lr_scaling: Literal["none", "sqrt", "linear"] = "none"
    """How the peak rate follows the batch size: "sqrt" suits Adam and LAMB, "linear" SGD."""
    lr_reference_batch_size: int = Field(default=4096, ge=1, le=1_000_000)
    """Batch size that `learning_rate` is meant for; the default is that of the paper."""
    optimizer: str = "adamw"
    """Registered optimizer or dotted path `package.module:Name`."""
    schedule: str = "linear"
    """Registered learning-rate schedule or dotted path."""
    warmup_fraction: float = Field(default=0.1, ge=0, lt=1)
    """Part of all steps over which the learning rate rises from 0."""
    decay_fraction: float = Field(default=0.2, gt=0, le=1)
    """Part of all steps, at the end, over which the schedule `wsd` lowers the rate to 0."""
    decay_shape: Literal["sqrt", "linear"] = "sqrt"
    """Course of that fall: 1 - sqrt(part), or 1 - part."""
    weight_decay: float = Field(default=0.01, ge=0, lt=1)
    """Decoupled weight decay; not applied to biases and LayerNorm (official grouping)."""
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the mean of the gradient."""
    adam_beta2: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the mean of the squared gradient."""
    adam_epsilon: float = Field(default=1e-6, gt=0)
    """Added to the root of the mean squared gradient."""
    bias_correction: bool = True
    """Correct Adam's means for their start at 0. The official ALBERT code does not; on small data
    sets correcting makes fewer runs fail (Mosbach et al. 2021). LAMB never corrects."""
    muon_momentum: float = Field(default=0.95, ge=0, lt=1)
    """Decay of the mean of the gradient of the matrices that `muon` updates."""
    muon_lr_ratio: float = Field(default=1.0, gt=0, le=1000)
    """Their learning rate over that of all other weights."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """The gradient of all weights together is scaled down to this L2 norm."""
    eval_steps: int | None = Field(default=None, ge=1)
    """Steps between evaluations; None: once an epoch. The end is always evaluated."""
    save_steps: int | None = Field(default=None, ge=1)
    """Steps between saved states; None: as the evaluations."""
    keep_states: int = Field(default=2, ge=2)
    """Newest states that are kept; the best one is kept besides."""
    patience: int | None = Field(default=None, ge=1)
    """Evaluations in a row without a better score after which training ends; None: never."""
    min_delta: float = Field(default=0.0, ge=0)
    """A score counts as better when it is more than this above the best."""
    load_best: bool = True
    """At the end the model holds the weights of the best evaluation, else the last ones."""
    log_steps: int = Field(default=10, ge=1)
    """Steps between lines in `metrics.jsonl`."""
    trackers: tuple[str, ...] = ()
    """Where those lines are sent besides: "tensorboard", "trackio", "wandb", "mlflow" or a dotted
    path."""
    tracker_project: str = Field(default="litebert", min_length=1, max_length=100)
    """Project or experiment that the run appears under in a tracker."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Order of the data and dropout follow from it."""
    bucket: bool = True
    """Put examples of similar length into one batch."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, about a third more time."""
    shallow_start: ShallowStart | None = None
    """Begin at fewer depths; None: all depths from the start."""
    averaging: AveragingSettings | None = None
    """Average the weights; None: the last ones count. Costs one more copy of the trained weights."""
    depth_decay: float | None = Field(default=None, gt=0, le=1)
    """Factor from one depth to the one before, on learning rates and on the share of each depth in
    the gradient of a shared block; see `docs/explanation/adaptation.md`. None: no decay."""
    compile: bool = False
    """Compile the shared block once, whatever the depth; see `docs/explanation/architecture-options.md`."""
    data_workers: int = Field(default=0, ge=0, le=256)
    """Processes that make batches ahead; 0: made when they are needed. Batches do not depend on it."""
    shard_weights: bool = False
    """With several processes: split weights, gradients and optimizer memory over them (FSDP2), to be
    whole only while a step computes. For models whose optimizer memory is too large for one GPU."""
    rank_timeout_seconds: float = Field(default=50.0, gt=0)
    """With several processes: a longest exchange after which the others count as lost."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Number type of matrix products; "auto" measures for up to a second which is fastest."""
    device: str = "auto"
    """One of "auto", "cpu", "cuda", "cuda:1", "mps"."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads; None: as many as this process may use."""
    guard: GuardSettings = GuardSettings()

    @model_validator(mode="after")
    def _check_ramp(self) -> TrainSettings:
        if self.batch_ramp is not None:
            check_ramp(self.batch_ramp, self.batch_size)
        return self
