"""Four runs that nothing was developed on: month-end accounts, a greenhouse, support tickets, a contract."""

from __future__ import annotations

import random

from benchmarks.board._story import Event, Story, agent, call, interleave, table, user


def accounts() -> Story:
    def noise(chance: random.Random, number: int) -> Event:
        account = chance.choice((4000, 4400, 6300, 6805, 1200, 1600))
        kind = number % 3
        if kind == 0:
            return call("ledger_lines", table(chance, f"lines of {account}", 15), account=account, page=number)
        if kind == 1:
            return call("open_document", table(chance, "invoice", 9), document_id=f"DOC-{number + 3000}")
        return call(
            "account_balance", f"{chance.randrange(90_000)}.{chance.randrange(100):02}", account=account, day=number
        )

    key = [
        user("Close May for Brandt GmbH. Post nothing to account 2000 without asking me."),
        call("open_period", "period 2026-05 opened", period="2026-05"),
        call("match_payments", "matched 188 of 204 payments", period="2026-05"),
        call("post_entry", "posted J-1041", journal="J-1041", debit=6300, credit=1600, amount=1890),
        call("trial_balance", "out of balance by 540.00", ok=False, period="2026-05"),
        call("post_entry", "posted J-1042", journal="J-1042", debit=6805, credit=1200, amount=540),
        call("trial_balance", "balanced: 1,204,331.20", period="2026-05"),
        user("Depreciate the press over 8 years instead of 10."),
        call("set_asset", "asset saved", asset="PRESS-2", years=10),
        call("set_asset", "asset saved", asset="PRESS-2", years=8),
        call("reverse_entry", "reversed J-1041", journal="J-1041"),
        agent("J-1041 was booked to the wrong month, so it is reversed."),
        call("file_vat", "rejected: certificate expired", ok=False, period="2026-05"),
        call("file_vat", "rejected: certificate expired", ok=False, period="2026-05"),
        user("You can post to account 2000 up to 5,000 euros without asking."),
        call("post_entry", "posted J-1050", journal="J-1050", debit=2000, credit=1600, amount=4200),
        call("match_payments", "matched 201 of 204 payments", period="2026-05"),
        call("send_reminder", "sent to Kessler AG", customer="Kessler AG", level=2),
        call("fx_rate", "USD 1.0832", currency="USD", day="2026-05-31"),
        user("Do not send reminders to Lindt any more, they pay by the quarter."),
        call("write_report", "report saved, 9 pages", file="close-2026-05.pdf", draft=1),
        call("write_report", "report saved, 11 pages", file="close-2026-05.pdf", draft=2),
        call("request_statement", "bank answers on Monday", ok=False, bank="Volksbank"),
        call("check_intercompany", "difference of 310.00 with Brandt Polska", ok=False, partner="Brandt Polska"),
    ]
    essentials = [
        ("nothing to account 2000", "account 2000 up to 5,000"),
        ("press over 8 years",),
        ("reminders to Lindt", "quarter"),
        ("2026-05", "balanced: 1,204,331.20"),
        ("matched 201 of 204",),
        ("PRESS-2", "8"),
        ("J-1041", "reversed"),
        ("J-1042", "540"),
        ("J-1050", "4200"),
        ("file_vat", "certificate expired"),
        ("certificate expired", "2 times"),
        ("Kessler AG", "sent"),
        ("close-2026-05.pdf", "11 pages"),
        ("Volksbank", "Monday"),
        ("Brandt Polska", "310.00"),
    ]
    return Story("accounts", "Close the month of May", "trial balance balanced, VAT filed, report written",
                 interleave(key, noise, 86, 21), essentials)  # fmt: skip


def greenhouse() -> Story:
    def noise(chance: random.Random, number: int) -> Event:
        bay = chance.choice(("A1", "A2", "B1", "B2", "C1"))
        kind = number % 3
        if kind == 0:
            return call("read_sensor", f"{chance.uniform(15, 29):.1f}", sensor=f"{bay}/temp", at=number)
        if kind == 1:
            return call("camera_report", table(chance, f"leaves in {bay}", 10), bay=bay, frame=number)
        return call("weather", table(chance, "hour forecast", 12), hours=number + 1)

    key = [
        user("Look after the greenhouse this week. Bay C2 is an experiment: never water it."),
        call("set_schedule", "schedule saved", valve="V-A", minutes=12, every="6h"),
        call("open_vent", "vent at 30 %", vent="roof-1", percent=30),
        call("run_diagnosis", "pump P2: pressure low, 0.8 bar", ok=False, device="P2"),
        call("restart_device", "restarted", device="P2"),
        call("run_diagnosis", "pump P2: pressure 2.1 bar, fine", device="P2"),
        user("Keep the nights above 16 degrees."),
        call("set_heating", "target 18", zone="east", target=18),
        call("set_heating", "target 16.5", zone="east", target=16.5),
        call("treat_plants", "applied neem oil to 40 plants", bay="B3", agent="neem oil"),
        call("inspect_pests", "aphids on 31 plants", ok=False, bay="B3", method="trap"),
        call("treat_plants", "released 500 ladybirds", bay="B3", agent="ladybirds"),
        call("inspect_pests", "aphids on 2 plants", bay="B3", method="trap"),
        user("The experiment in C2 is finished, water it like the others."),
        call("set_schedule", "schedule saved", valve="V-C2", minutes=12, every="6h"),
        call("order_supplies", "order S-310 placed: 20 bags of substrate", item="substrate", bags=20),
        call("order_supplies", "refused: supplier needs a purchase number", ok=False, item="CO2 bottle", count=2),
        call("order_supplies", "refused: supplier needs a purchase number", ok=False, item="CO2 bottle", count=2),
        call("order_supplies", "refused: supplier needs a purchase number", ok=False, item="CO2 bottle", count=2),
        call("set_light", "16 h", row="lettuce", hours=16),
        call("set_light", "14 h", row="lettuce", hours=14),
        call("set_light", "16 h", row="lettuce", hours=16),
        user("No pesticides in bay A, the school visits on Thursday."),
        call("calibrate", "failed: probe pH-3 does not answer", ok=False, probe="pH-3"),
        call("harvest", "41 kg tomatoes", bay="A3", crop="tomato"),
        call("write_log", "saved", file="week-22.md", text="P2 restarted, ladybirds in B3"),
    ]
    essentials = [
        ("C2", "never water it", "water it like the others"),
        ("nights above 16",),
        ("no pesticides in bay A", "school"),
        ("P2", "2.1 bar"),
        ("roof-1", "30"),
        ("V-A", "12"),
        ("east", "16.5"),
        ("B3", "ladybirds"),
        ("B3", "aphids on 2 plants"),
        ("V-C2", "saved"),
        ("S-310",),
        ("CO2 bottle", "purchase number"),
        ("CO2 bottle", "3 times"),
        ("lettuce", "16 h"),
        ("pH-3", "does not answer"),
        ("41 kg",),
        ("week-22.md", "ladybirds"),
    ]
    return Story("greenhouse", "Look after the greenhouse", "plants healthy until Sunday",
                 interleave(key, noise, 84, 22), essentials)  # fmt: skip


def tickets() -> Story:
    def noise(chance: random.Random, number: int) -> Event:
        kind = number % 3
        if kind == 0:
            return call("search_tickets", table(chance, "tickets", 13), query=f"router {number}", page=number)
        if kind == 1:
            return call("read_ticket", table(chance, "history", 9), ticket=f"#{number + 7000}")
        return call("search_kb", table(chance, "articles", 8), query=chance.choice(("reset", "wifi", "dns", "invoice")))

    key = [
        user("Work through the queue of the router outage. No refunds over 50 euros."),
        call("assign_ticket", "assigned", ticket="#6101", to="tier 2"),
        call("run_remote", "device answers, firmware 4.2", device="RX-19", action="ping"),
        call("run_remote", "update failed at 40 %", ok=False, device="RX-19", action="update"),
        call("run_remote", "update done, firmware 4.4", device="RX-19", action="update"),
        call("issue_refund", "refunded 35 euros", ticket="#6101", euros=35),
        user("Answer Mrs. Okafor in English, and only by mail, not by phone."),
        call("send_reply", "sent", ticket="#6117", text="Dear Mrs. Okafor, a technician comes on 12 May"),
        call("send_reply", "sent", ticket="#6117", text="Dear Mrs. Okafor, the technician comes on 14 May"),
        call("update_article", "saved", article="KB-88", text="Hold reset for 10 s"),
        call("update_article", "saved", article="KB-88", text="Hold reset for 30 s"),
        call("book_technician", "no slot before 20 May", ok=False, region="south", day="2026-05-13"),
        call("book_technician", "no slot before 20 May", ok=False, region="south", day="2026-05-13"),
        user("Refunds up to 120 euros are fine from now on."),
        call("issue_refund", "refunded 95 euros", ticket="#6140", euros=95),
        call("merge_tickets", "merged 6 tickets", into="#6099", count=6),
        call("split_ticket", "split off #6188", ticket="#6099", part="#6188"),
        call("set_banner", "banner on", page="status", text="Outage in Ghent"),
        call("set_banner", "banner off", page="status", text=""),
        agent("The outage banner is down since Ghent is back."),
        call("escalate", "vendor case V-2231 opened", vendor="Netcom", case="V-2231"),
        call("run_script", "exit 1: 4 of 60 routers unreachable", ok=False, script="mass_update.py"),
        user("Do not close #6150, legal looks at it."),
        call("export_report", "rows 412", file="outage.csv", format="csv"),
    ]
    essentials = [
        ("no refunds over 50", "refunds up to 120"),
        ("Okafor", "only by mail"),
        ("do not close #6150",),
        ("#6101", "refunded 35"),
        ("RX-19", "firmware 4.4"),
        ("#6117", "14 May"),
        ("KB-88", "30 s"),
        ("south", "no slot before 20 May"),
        ("no slot before 20 May", "2 times"),
        ("#6140", "refunded 95"),
        ("#6099", "#6188"),
        ("banner off",),
        ("V-2231",),
        ("mass_update.py", "4 of 60"),
        ("outage.csv", "412"),
    ]
    return Story("tickets", "Empty the outage queue", "every ticket answered",
                 interleave(key, noise, 85, 23), essentials)  # fmt: skip


def contract() -> Story:
    def noise(chance: random.Random, number: int) -> Event:
        kind = number % 3
        if kind == 0:
            return call(
                "find_clauses",
                table(chance, "clauses", 12),
                text=chance.choice(("liability", "term", "notice")),
                page=number,
            )
        if kind == 1:
            return call("open_precedent", table(chance, "precedent", 11), precedent=f"P-{number + 100}")
        return call("read_statute", table(chance, "paragraphs", 9), paragraph=f"§ {number + 280}")

    key = [
        user("Review the supply contract with Aurel. Do not change the payment terms, they were agreed."),
        call("load_contract", "62 clauses", contract="aurel-v3.docx"),
        call("edit_clause", "saved", clause="9.2", text="Liability is limited to 2 million euros"),
        call("check_consistency", "clause 9.2 contradicts 14.1", ok=False, contract="aurel-v3.docx"),
        call("edit_clause", "saved", clause="14.1", text="Subject to clause 9.2"),
        call("edit_clause", "saved", clause="9.2", text="Liability is limited to 3 million euros"),
        call("check_consistency", "no contradiction in 62 clauses", contract="aurel-v3.docx"),
        user("Make the notice period 90 days."),
        call("edit_clause", "saved", clause="17", text="Notice period 60 days"),
        call("edit_clause", "saved", clause="17", text="Notice period 90 days"),
        call("ask_counterparty", "waiting for an answer", ok=False, clause="22", question="arbitration in Vienna?"),
        call("insert_clause", "inserted", clause="22a", text="Mediation before arbitration"),
        call("remove_clause", "removed", clause="22a"),
        agent("Mediation was not wanted by their counsel, dropped."),
        user("The payment terms may change after all: 30 days instead of 45."),
        call("edit_clause", "saved", clause="6.1", text="Payment within 30 days"),
        call("lookup_registry", "timeout", ok=False, company="Aurel Sàrl"),
        call("lookup_registry", "timeout", ok=False, company="Aurel Sàrl"),
        call("lookup_registry", "timeout", ok=False, company="Aurel Sàrl"),
        call("lookup_registry", "timeout", ok=False, company="Aurel Sàrl"),
        call("compare_versions", "14 changes", left="aurel-v3.docx", right="aurel-v2.docx"),
        call("add_comment", "comment 31", clause="11", text="Ask tax about VAT on tooling"),
        user("Do not show the draft to procurement yet."),
        call("check_defined_terms", "undefined: Tooling, Site", ok=False, contract="aurel-v3.docx", mode="terms"),
        call("export_pdf", "exported", file="aurel-v3-review.pdf", pages=41),
    ]
    essentials = [
        ("do not change the payment terms", "payment terms may change after all"),
        ("notice period 90 days", "make the notice period"),
        ("draft to procurement",),
        ("9.2", "3 million"),
        ("14.1", "subject to clause 9.2"),
        ("aurel-v3.docx", "no contradiction in 62"),
        ("17", "90 days"),
        ("22", "waiting for an answer"),
        ("22a", "removed"),
        ("6.1", "within 30 days"),
        ("Aurel Sàrl", "timeout"),
        ("Aurel Sàrl", "4 times"),
        ("14 changes",),
        ("VAT on tooling",),
        ("undefined: Tooling, Site",),
        ("aurel-v3-review.pdf",),
    ]
    return Story("contract", "Review the supply contract", "a consistent draft with all changes marked",
                 interleave(key, noise, 85, 24), essentials)  # fmt: skip


STORIES = (accounts, greenhouse, tickets, contract)
