# SPDX-License-Identifier: GPL-2.0
"""Unit tests of guests.py, several guests side by side that are judged as one: run by
python3 -m unittest discover -s scripts/tests; exit 0 if all pass."""

import json
import os
import subprocess
import sys

from recorded import FIXTURES, TOP, RecordedGuest

import guests
import portlog

MACHINE = "arch=x86_64\nkarch=x86_64\nimage=bzImage\nqemu=fake\nargs=-M none\nbus=mmio\nconsole=ttyS0\ncmdline=quiet\n"
END = "[    4.000000] thp: end of run\n"


class Sharing(RecordedGuest):
    def test_dealt_like_cards(self):
        self.assertEqual(guests.deal(["a", "b", "c", "d", "e"], 2), [["a", "c", "e"], ["b", "d"]])
        self.assertEqual(guests.deal(["a"], 2), [["a"]])

    def test_dealt_by_last_seconds(self):
        seconds = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 5.0}
        self.assertEqual(guests.deal(["a", "b", "c", "d"], 2, seconds), [["a", "d"], ["b", "c"]])
        self.assertEqual(guests.deal(["d"], 2, seconds), [["d"]])
        self.assertEqual(guests.deal(["a", "d", "new"], 2, seconds), [["a", "new"], ["d"]])

    def test_last_seconds_of_whole_runs_only(self):
        with open(self.base + ".port", "w", encoding="utf-8") as f:
            f.write(self.port("a", "") + "start b\n")
        self.assertEqual(guests.last_seconds(self.base), {"a": 0.1})
        self.assertEqual(guests.last_seconds(self.base + "-none"), {})

    def port(self, slug, tail="verdict done\n"):
        return f"plan 1 {slug}\nstart {slug}\n| 1..1\n| ok 1 {slug}.x\nend {slug} exit=0 seconds=0.100\n{tail}"

    def test_one_port_out_of_two(self):
        port = portlog.parse(guests.merge_ports([self.port("a"), self.port("b")]))
        self.assertEqual((port.plan, [r.slug for r in port.runs]), (["a", "b"], ["a", "b"]))
        self.assertEqual((port.done, port.bad), (True, []))

    def test_verdict_of_both_or_none(self):
        self.assertFalse(portlog.parse(guests.merge_ports([self.port("a"), self.port("b", "")])).done)
        self.assertFalse(portlog.parse(guests.merge_ports([self.port("a", ""), self.port("b")])).done)
        self.assertFalse(portlog.parse(guests.merge_ports([self.port("a"), ""])).done)

    def test_cut_record_stays_bad(self):
        port = portlog.parse(guests.merge_ports([self.port("a", "check a o"), self.port("b")]))
        self.assertEqual((port.bad, port.done), (["cut-off check a o"], False))

    def test_abort_comes_last(self):
        port = portlog.parse(guests.merge_ports([self.port("a", "abort stuck: x\nverdict done\n"), self.port("b")]))
        self.assertEqual((port.abort, port.bad), ("stuck: x", []))

    def record(self, number, slug, ended="ok", log=END):
        base = f"{self.base}.guest{number}"
        argv = ["qemu", "-append", f"thp.run={slug}"]
        for suffix, text in ((".port", self.port(slug)), (".log", log), (".meta.json", json.dumps(
                {"argv": argv, "qemu": "10.0", "ended": ended, "reason": ended, "seconds": number}))):
            with open(base + suffix, "w", encoding="utf-8") as f:
                f.write(text)
        return base

    def merged(self, *parts):
        guests.merge(self.base, list(parts))
        _, report, text = self.judge()
        return report, text

    def test_all_is_well(self):
        report, text = self.merged(self.record(1, "a"), self.record(2, "b"))
        self.assertEqual((report["verdict"], report["seconds"]), ("pass", 2), text)
        self.assertEqual([t["name"] for t in report["tests"]], ["a/x", "b/x"])

    def test_log_of_one_is_cut(self):
        report, text = self.merged(self.record(1, "a", log="x\n"), self.record(2, "b"))
        self.assertEqual(report["verdict"], "error")
        self.assertIn("the console log is cut off", text)

    def test_complaint_in_one(self):
        log = "[    1.000000] thp: start a\n[    2.000000] WARNING: CPU: 0 PID: 1 at mm/x.c:1 f+0x1/0x2\n" + END
        report, _ = self.merged(self.record(1, "a", log=log), self.record(2, "b"))
        self.assertEqual((report["verdict"], len(report["splats"])), ("fail", 1))

    def test_worst_end_wins(self):
        for ended in ("panic", "hung", "error"):
            report, text = self.merged(self.record(1, "a", ended, "the sick one\n"), self.record(2, "b"))
            self.assertEqual(report["verdict"], ended)
            self.assertTrue(self.read(".log").endswith("the sick one\n"), text)

    def test_guest_without_records(self):
        report, _ = self.merged(self.record(1, "a"), self.base + ".guest2")
        self.assertEqual(report["verdict"], "error")

    def test_program_that_did_not_run(self):
        first, second = self.record(1, "a"), self.record(2, "b")
        with open(second + ".port", "w", encoding="utf-8") as f:
            f.write("plan 0\nverdict done\n")
        report, text = self.merged(first, second)
        self.assertEqual(report["verdict"], "fail")
        self.assertIn("b/*: wanted pass, got fail", text)


class SideBySide(RecordedGuest):
    """The real guest.py twice, on a QEMU that is played by a script."""

    def boot(self, scenario, *more):
        machine = self.base + ".machine"
        with open(machine, "w", encoding="utf-8") as f:
            f.write(MACHINE)
        done = subprocess.run(
            [sys.executable, os.path.join(TOP, "scripts", "guests.py"), "--machine", machine, "--kernel", machine,
             "--initrd", machine, "--base", self.base, "--qemu-dir", os.path.join(FIXTURES, "qemu"), "--guests", "2",
             "--programs", "calm,wild", "--cmdline-extra", f"thp.fake=ok {scenario}", *more],
            stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stderr

    def test_two(self):
        status, said = self.boot("")
        self.assertEqual(status, 0, said)
        self.assertIn("calm: exit 0", said)
        self.assertIn("wild: exit 0", said)
        self.assertEqual(json.loads(self.read(".meta.json"))["ended"], "ok")
        self.assertEqual(portlog.parse(self.read(".port")).plan, ["calm", "wild"])

    def test_one_panics(self):
        status, said = self.boot("thp.fake.wild=panic")
        self.assertEqual(status, 1, said)
        _, report, _ = self.judge()
        self.assertEqual(report["verdict"], "panic")
        self.assertEqual(self.result(report, "calm/x")["result"], "pass")

    def test_records_of_earlier_guests_go(self):
        with open(self.base + ".guest7.log", "w", encoding="utf-8"):
            pass
        self.boot("")
        self.assertFalse(os.path.exists(self.base + ".guest7.log"))

    def test_wrong_use(self):
        self.assertEqual(self.boot("", "--memory", "much")[0], 2)
