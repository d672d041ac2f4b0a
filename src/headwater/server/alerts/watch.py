"""The loop that evaluates the alert rules and sends messages, on the server that leads.

Rules are evaluated on a thread of their own with a connection for reading; messages are sent on the event
loop, one a channel at a time; the writer only ever gets small transactions. So neither a large store
nor a slow receiver keeps anybody who sends events.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from headwater.server.alerts import incidents
from headwater.server.alerts.channels import DeliveryError, Notifier
from headwater.server.alerts.conditions import Conditions
from headwater.server.alerts.messages import message, trial_message

if TYPE_CHECKING:
    from headwater.server.alerts.incidents import Delivery, IncidentChanges
    from headwater.server.alerts.rules import Rules
    from headwater.server.app import App
    from headwater.server.store import Store

__all__ = ["Alerts"]

log = logging.getLogger("headwater.server")

SECOND = 1_000_000
FIRST, LONGEST = 2.0, 600.0
"""Seconds after which a message is tried again: twice as long each time, up to the longest."""
SHARE = 20
"""A large store takes longer to evaluate: no more than a twentieth of the time goes into it."""
GIVE_UP = 7 * 86_400 * SECOND
FORGET = 3_600.0


class Alerts:
    """The alerts of a server: evaluates its rules and notifies their channels."""

    def __init__(self, rules: Rules, address: str = "") -> None:
        self.conditions = Conditions(rules)
        """The rules, with what their evaluations remember."""
        self._address = address
        """Where the page is, unless the rules say otherwise."""
        self.evaluated_at: int | None = None
        """When this server last evaluated its rules, if it leads."""
        self.notifier = Notifier()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="headwater-alerts")
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._forgot = 0.0

    @property
    def rules(self) -> Rules:
        """The rules that are in use."""
        return self.conditions.rules

    async def run(self, app: App) -> None:
        """Evaluate and send until the server ends; started with it."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = time.monotonic()
                try:
                    if await asyncio.to_thread(app.store.database.lead):
                        await self._round(app, loop)
                    else:
                        self.evaluated_at = None
                except Exception as error:  # noqa: BLE001  (the next round tries again)
                    log.warning(
                        "alert rules could not be evaluated, the next round tries again: %s", error
                    )
                took = time.monotonic() - began
                await asyncio.sleep(max(app.settings.alerts_every, SHARE * took))
        finally:
            for task in self._sending.values():
                task.cancel()
            for task in list(self._sending.values()):
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await asyncio.to_thread(self._thread.shutdown)
            await self.notifier.close()

    def use(self, rules: Rules) -> None:
        """Use these rules from the next evaluation on."""
        # An evaluation that is going on keeps its own, with what it remembers of them.
        self.conditions = Conditions(rules)

    async def test(self, rule: str) -> list[tuple[str, str | None]]:
        """Send a test message through each channel of a rule; what went wrong with which."""
        rules = self.rules
        payload = trial_message(rules.rules[rule], rules.page or self._address)
        found: list[tuple[str, str | None]] = []
        for name in rules.rules[rule].to:
            try:
                await self.notifier.send(rules.channels[name], payload)
            except DeliveryError as error:
                found.append((name, str(error)))
            else:
                found.append((name, None))
        return found

    async def _round(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        now, conditions = time.time_ns() // 1000, self.conditions
        rules = conditions.rules
        changes, same, epoch = await loop.run_in_executor(
            self._thread, conditions.evaluate, app, now
        )
        if (changes.write or changes.owed or changes.seen or not same) and not (
            await app.ingest.perform(lambda store: _written(store, rules, changes, now, epoch))
        ):
            self.use(self.rules)  # what it remembers may be gone too
            return
        self.evaluated_at = now
        if changes.write:
            app.live.broadcast("alerts", {})
        for one in changes.write:
            # The content of an open incident may change with every evaluation.
            if one.resolved is not None or one.opened == now:
                state = "resolved" if one.resolved is not None else "open"
                log.info("alert %s: %s (%s)", state, one.body.title, one.id)
        if time.monotonic() - self._forgot > FORGET:
            self._forgot = time.monotonic()
            await app.ingest.perform(lambda store: _forgotten(store, now))
        await self._send_due(app, loop)

    async def _send_due(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        """Start what is to be sent now; a channel that is still at its last message is left alone."""
        now = time.time_ns() // 1000
        # Before the read: what is sent while it lasts is read as still to be sent.
        busy = {channel for channel, task in self._sending.items() if not task.done()}
        deliveries = await loop.run_in_executor(self._thread, self._due, app, now)
        by_channel: dict[str, list[Delivery]] = {}
        for one in deliveries:
            if one.channel not in busy:
                by_channel.setdefault(one.channel, []).append(one)
        for channel, some in by_channel.items():
            self._sending[channel] = asyncio.ensure_future(self._send(app, some))

    def _due(self, app: App, now: int) -> list[Delivery]:
        with app.store.database.reading() as connection:
            return incidents.due(connection, now)

    async def _send(self, app: App, deliveries: list[Delivery]) -> None:
        for one in deliveries:
            try:
                if not await self._deliver(app, one):
                    return  # the channel does not take anything now: the others wait too
            except Exception:
                log.exception(
                    "alert %s: the message to channel %s could not be handled",
                    one.incident.id, one.channel,
                )  # fmt: skip

    async def _deliver(self, app: App, one: Delivery) -> bool:
        rules = self.rules
        channel = rules.channels.get(one.channel)
        problem: str | None = "the channel is no longer in the rules"
        again: int | None = None
        if channel is not None:
            try:
                page = rules.page or self._address
                await self.notifier.send(channel, message(one.incident, one.phase, page))
                problem = None
            except DeliveryError as error:
                problem = str(error)
        now = time.time_ns() // 1000
        start = one.incident.opened if one.phase == incidents.OPENED else one.incident.resolved
        if channel is not None and problem is not None and now - (start or 0) < GIVE_UP:
            again = now + int(min(LONGEST, FIRST * 2 ** min(one.attempts, 20)) * SECOND)
        if problem is not None:
            left = "it will be tried again" if again is not None else "it is given up"
            log.warning(
                "alert %s could not be sent to %s: %s; %s",
                one.incident.id, one.channel, problem, left,
            )  # fmt: skip
        await app.ingest.perform(
            lambda store: incidents.note_delivery(store.connection, one, now, problem, again)
        )
        return problem is None or again is None


def _written(store: Store, rules: Rules, changes: IncidentChanges, now: int, epoch: int) -> bool:
    """Write what an evaluation changes, unless something was purged since: it may name that."""
    store.begin()
    if store.epoch != epoch:
        store.connection.rollback()
        return False
    # With the first evaluation of a rule, or the next one would send what was wrong before the rule.
    incidents.register(store.connection, rules, now)
    incidents.write(store.connection, changes, now)
    store.connection.commit()
    return True


def _forgotten(store: Store, now: int) -> None:
    store.connection.begin()
    incidents.forget_old(store.connection, now)
    store.connection.commit()
