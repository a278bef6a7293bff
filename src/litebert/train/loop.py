"""The training loop: one for fine-tuning, pretraining and distillation."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from torch import nn

from litebert.checkpoint.fs import StorageError
from litebert.checkpoint.state import StateStore
from litebert.data.batch import EncodedExample
from litebert.train.averaging import WeightAverage
from litebert.train.chance import chance_of, examine_answers
from litebert.train.device import choose_device, torch_threads
from litebert.train.evaluate import Evaluate, Evaluation
from litebert.train.events import OnEvent, RolledBack, Saved, Started
from litebert.train.gradient import StepGradient, StepOutcome
from litebert.train.guard import Guard
from litebert.train.keeper import Keeper
from litebert.train.log import MetricsLog
from litebert.train.micro import LabelledLoss, StepLoss
from litebert.train.optim import make_optimizer, set_learning_rate
from litebert.train.options import set_depth, set_options
from litebert.train.plan import StepPlan
from litebert.train.precision import choose_precision
from litebert.train.ranks import ALONE, Ranks
from litebert.train.report import Reporter
from litebert.train.settings import TrainSettings
from litebert.train.sharding import clip_gradients, place_weights
from litebert.train.shared_store import SharedStore
from litebert.train.source import BatchSource, make_source
from litebert.train.state import FitResult, Snapshot, Status, TrainState, weights_on_cpu
from litebert.train.stop import StopRequest
from litebert.train.trackers import Trackers, tracked_run


def fit(
    model: nn.Module,
    data: Sequence[EncodedExample] | BatchSource,
    settings: TrainSettings,
    *,
    evaluate: Evaluate | None = None,
    state_dir: Path | None = None,
    resume: bool = False,
    on_event: OnEvent | None = None,
    stop: StopRequest | None = None,
    step_loss: StepLoss | None = None,
    ranks: Ranks = ALONE,
) -> FitResult:
    """Train `model` in place.

    On the CPU in float32 with one thread the result is a function of model, data and settings,
    bit for bit, however often the run is interrupted, killed and resumed.

    Args:
        model: has `forward_packed(input_ids, packing, token_type_ids, position_ids, labels=...)`
            which returns an object with `loss` (a mean) and `logits`.
        data: labelled examples, or a source of batches.
        settings: how to train.
        evaluate: scores the model; None: no evaluations, the last weights are the result.
        state_dir: run folder for `checkpoints/`, `metrics.jsonl` and `run.lock`; None: nothing is
            written.
        resume: go on from the newest state in `state_dir`, if there is one.
        on_event: is told what happens; what it raises ends the run.
        stop: is looked at between steps and evaluation batches; see `stop_on_signals`.
        step_loss: what to minimise; None: the model's loss on the labels.
        ranks: the processes that train together; each calls `fit` with equal arguments and equal
            weights, and only the first writes. `evaluate` must give the same on each.

    Returns:
        How the run ended. The model holds the best weights, or the last ones without evaluations
        or with `load_best=False`, and is in evaluation mode.

    Raises:
        DataError: no examples, or no labels.
        SettingsError: unknown names, a device that is not there, or too little memory for a
            single example.
        CheckpointError: the folder is in use by another process, holds the state of another run,
            or holds a state and `resume` is False.
        StorageError: the first state cannot be saved.
        TrainingDiverged: numbers stayed non-finite, or the model collapsed; carries the evidence.
        RankLostError: another process died or hangs.
    """
    with ExitStack() as stack:
        folder = state_dir if ranks.is_first else None
        store = None if folder is None else StateStore(folder / "checkpoints")
        if store is not None:
            stack.enter_context(store.lock())
        threads = stack.enter_context(torch_threads(settings.threads))
        metrics = MetricsLog(None if folder is None else folder / "metrics.jsonl")
        stack.callback(metrics.close)
        shared = None if state_dir is None else SharedStore(store, ranks)
        heard = on_event if ranks.is_first else None
        source = make_source(data, settings)
        run = _Run(model, source, settings, shared, metrics, heard, step_loss, ranks)
        run.evaluate = evaluate
        run.stop = stop or StopRequest()
        run.begin(resume, threads)
        if folder is not None and settings.trackers:
            trackers = Trackers(settings.trackers, tracked_run(folder, settings, run.state.step))
            stack.callback(trackers.close)
            metrics.also = trackers.log
        return run.to_the_end()


class _Run:
    """One run in progress."""

    def __init__(
        self,
        model: nn.Module,
        source: BatchSource,
        settings: TrainSettings,
        store: SharedStore | None,
        metrics: MetricsLog,
        on_event: OnEvent | None,
        step_loss: StepLoss | None,
        ranks: Ranks,
    ) -> None:
        self.evaluate: Evaluate | None = None
        self.stop = StopRequest()
        self.source, self.settings, self.ranks = source, settings, ranks
        self.plan = StepPlan(source, settings)
        self.device = choose_device(settings.device)
        self.precision = choose_precision(settings.precision, self.device)
        self.model = model.to(self.device)
        set_options(model, settings)
        self.weights = place_weights(model, settings, ranks, self.device, self.precision)
        self.optimizer = make_optimizer(model, settings)
        self.scaler = self.precision.make_scaler()
        chance = chance_of(step_loss, source.labels)
        self.guard = Guard(settings.guard, chance=chance, warmup_steps=self.plan.warmup_steps)
        self.average = WeightAverage(model, settings)
        self.snapshot = Snapshot(model, self.optimizer, self.scaler, self.guard, self.average)
        self.keeper = Keeper(store, self.snapshot, self.plan, settings, source.fingerprint)
        self.metrics = metrics
        self.tell = Reporter(on_event, metrics, self.snapshot.findings, self.plan, settings)
        self.gradient = StepGradient(
            model,
            step_loss or LabelledLoss(),
            ranks,
            self.weights,
            self.device,
            self.precision,
            self.scaler,
            self.tell.warned,
        )
        self.state = TrainState(micro_batch_tokens=settings.micro_batch_tokens)
        self.clock = time.monotonic()
        self.is_stop_agreed, self.agreed_seconds = False, 0.0

    def begin(self, resume: bool, threads: int) -> None:
        """Load the newest state, or save the first one."""
        found = self.keeper.load(resume)
        if found is not None:
            self.state = found
        self.agreed_seconds = self.state.seconds
        self.metrics.open(self.state.metrics_bytes)
        self.clock = time.monotonic()
        if found is None:
            self.save()
        self.tell.emit(
            Started(
                step=self.state.step,
                total_steps=self.plan.total_steps,
                threads=threads,
                device=str(self.device),
                precision=self.precision.name,
                precision_reason=self.precision.reason,
                gflops=self.precision.gflops,
            )
        )

    def to_the_end(self) -> FitResult:
        """Train, evaluate and save until one reason to end comes up."""
        self.model.train()
        while True:
            if self.is_stopping():
                self.save_or_warn()
                return self.result("interrupted")
            end = self.reason_to_end()
            if self.is_evaluation_due(end) and not self.evaluate_now(is_last=end is not None):
                continue  # a stop was requested meanwhile; the evaluation is done after resuming
            end = end or self.reason_to_end()
            if end or self.state.step % self.plan.save_steps == 0:
                self.save_or_warn()
            if end:
                return self.result(end)
            self.train_step()

    def reason_to_end(self) -> Status | None:
        """Return why the run is over, or None while it is not."""
        state, patience = self.state, self.settings.patience
        if state.step >= self.plan.total_steps:
            return "finished"
        has_waited = patience is not None and state.evaluations_since_best >= patience
        if has_waited or state.is_given_up:
            return "early_stopped"
        return "time_up" if self.progress() >= 1 else None

    def is_evaluation_due(self, end: Status | None) -> bool:
        """Whether the present weights shall be evaluated now."""
        state = self.state
        return (
            self.evaluate is not None
            and state.evaluated_step != state.step
            and (end is not None or state.step % self.plan.eval_steps == 0)
        )

    def train_step(self) -> None:
        """One optimizer update."""
        self.tick()
        state, start, progress = self.state, time.monotonic(), self.progress()
        learning_rate = state.lr_scale * self.plan.learning_rate(progress)
        set_learning_rate(self.optimizer, learning_rate)
        set_depth(self.model, self.plan.depth(progress))
        batch = self.source.batch(state.step, progress, self.ranks.part)
        waited = time.monotonic() - start
        outcome = self.gradient.compute(
            batch,
            state,
            dropout_seed=self.plan.seed_of(state.step, self.ranks.rank),
            is_stop_requested=self.stop.is_requested,
        )
        self.agree(outcome)
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        norm = clip_gradients(self.model, self.settings.max_grad_norm)
        if self.is_scaler_search(outcome.loss, norm):
            verdict = "ok"  # the scaler leaves the weights alone and tries a smaller factor
        else:
            examples = [] if batch is None else batch.example_index.tolist()
            verdict, finding = self.guard.judge_step(state.step, outcome.loss, norm, examples)
            self.tell.found(finding, is_fatal=True)
        if verdict == "ok":
            self.update()
            self.average.update(progress)
        self.optimizer.zero_grad(set_to_none=True)
        if verdict == "roll_back":
            self.roll_back()
            return
        state.step += 1
        state.tokens_seen += outcome.tokens
        if verdict == "ok":
            self.tell.found(self.guard.judge_loss(state.step, outcome.loss, self.progress()))
            state.window.add_loss(outcome.loss, outcome.terms)
        state.window.add_time(outcome.tokens, time.monotonic() - start, waited)
        self.tick()
        self.tell.stepped(state, outcome.loss, learning_rate, norm)

    def agree(self, outcome: StepOutcome) -> None:
        """Take over what the ranks agreed on: one clock, and whether to stop."""
        self.is_stop_agreed, self.agreed_seconds = outcome.is_stop_requested, outcome.seconds
        if outcome.is_stop_requested:
            self.stop.request()

    def is_stopping(self) -> bool:
        """Whether the run shall end now.

        A rank must not act on a signal that the others have not heard of: they would wait for it.
        """
        return self.stop.is_requested if self.ranks.world == 1 else self.is_stop_agreed

    def is_scaler_search(self, loss: float, norm: float) -> bool:
        """Whether float16 overflowed only because the loss scale is still too large."""
        is_overflow = math.isfinite(loss) and not math.isfinite(norm)
        return self.scaler is not None and is_overflow and self.scaler.get_scale() > 1

    def update(self) -> None:
        """Change the weights."""
        if self.scaler is None:
            with self.weights.exchanging():
                self.optimizer.step()
            return
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def roll_back(self) -> None:
        """Go back to the last good state with a lower learning rate."""
        self.tick()
        before = self.state.step
        self.state = self.keeper.roll_back(self.state, self.metrics.offset)
        self.tell.emit(RolledBack(before, self.state.step, self.state.lr_scale))

    def evaluate_now(self, is_last: bool) -> bool:
        """Score the model and remember the best; False when a stop came in between."""
        state = self.state
        set_depth(self.model, None)
        stop = self.stop if self.ranks.world == 1 else StopRequest()  # all or none go on
        with self.weights.whole(), self.average.in_place():
            result = None if self.evaluate is None else self.evaluate(self.model, stop)
        self.model.train()
        if result is None:
            return not self.is_stopping()
        state.evaluated_step, state.last_metrics = state.step, result.metrics
        best = state.best_score
        is_best = math.isfinite(result.score) and (
            best is None or result.score > best + self.settings.min_delta
        )
        if is_best:
            state.best_step, state.best_score = state.step, result.score
            state.best_metrics, state.evaluations_since_best = result.metrics, 0
            self.snapshot.keep_best()
        else:
            state.evaluations_since_best += 1
        self.tell.evaluated(state, result, is_best)
        self.judge(result, is_last or self.reason_to_end() is not None)
        return True

    def judge(self, result: Evaluation, is_last: bool) -> None:
        """Ask the guard about an evaluation; a collapse that the end reveals stops nothing."""
        if result.logits is None or result.labels is None:
            return
        answers = examine_answers(result.logits, result.labels)
        progress = 1.0 if is_last else self.progress()
        finding = self.guard.judge_answers(self.state.step, answers, progress)
        can_stop = self.settings.guard.on_collapse == "stop" and not is_last
        if finding is not None and finding.is_confirmed and self.guard.has_learned:
            self.state.is_given_up = can_stop
            can_stop = False
        self.tell.found(finding, is_fatal=can_stop)

    def save_or_warn(self) -> None:
        """Save; a full disk costs a warning, and the next save is the next try."""
        try:
            self.save()
        except StorageError as error:
            message = f"the training state was not saved, training goes on: {error}"
            self.tell.warned(self.state.step, message)

    def save(self) -> None:
        """Save everything, unless the present state is saved already."""
        self.tick()
        self.metrics.sync()
        self.state.metrics_bytes = self.metrics.offset
        folder = self.keeper.save(self.state)
        if folder is not None:
            self.tell.emit(Saved(self.state.step, folder))

    def progress(self) -> float:
        """Part of the schedule that has passed, in [0, 1]; the same on all ranks."""
        if self.ranks.world > 1:
            return self.plan.progress(self.state.step, self.agreed_seconds)
        if self.settings.max_seconds is not None:
            self.tick()
        return self.plan.progress(self.state.step, self.state.seconds)

    def tick(self) -> None:
        """Add the time since the last call to the time used."""
        now = time.monotonic()
        self.state.seconds += now - self.clock
        self.clock = now

    def result(self, status: Status) -> FitResult:
        """Put the best weights into the model and sum up."""
        self.tick()
        set_depth(self.model, None)
        state, best, last = self.state, self.snapshot.best_weights, None
        self.weights.join()
        is_over = status != "interrupted"
        if is_over:
            self.average.install()
        if is_over and self.settings.load_best and best and state.best_step != state.step:
            last = weights_on_cpu(self.model)
            self.model.load_state_dict(best)
        self.model.eval()
        return FitResult(
            status=status,
            signal=None if is_over else self.stop.signal,
            step=state.step,
            epoch=self.plan.epoch(state.step),
            best_step=state.best_step,
            best_score=state.best_score,
            best_metrics=state.best_metrics,
            last_metrics=state.last_metrics,
            last_weights=last,
            saved_step=self.keeper.saved_step,
            tokens_seen=state.tokens_seen,
            seconds=state.seconds,
            skipped_steps=self.guard.state.skipped_steps,
            rollbacks=self.guard.state.rollbacks,
            findings=tuple(self.snapshot.findings),
            is_collapsed=any(f.is_confirmed for f in self.snapshot.findings)
            and not self.guard.has_learned,
        )
