"""Four runs that the board was developed on: data cleaning, operations, bookings, literature research."""

from __future__ import annotations

import random

from benchmarks.board._story import Event, Story, agent, call, interleave, table, user


def cleaning() -> Story:
    def noise(chance: random.Random, number: int) -> Event:
        kind = number % 4
        column = chance.choice(("city", "zip", "signup", "plan", "age", "source"))
        if kind == 0:
            return call("profile_column", table(chance, f"column {column}", 9), table="customers_raw", column=column)
        if kind == 1:
            offset = number * 50
            return call("preview_rows", table(chance, "id name value", 12), table="customers_raw", offset=offset)
        if kind == 2:
            return call(
                "run_sql", table(chance, "n", 4), sql=f"SELECT {column}, count(*) FROM customers_raw LIMIT {number}"
            )
        return call("list_tables", "customers_raw\ncustomers_clean\norders_raw\ncountries")

    key = [
        user("Please clean customers_raw into customers_clean. Never drop rows where the country is Japan, legal needs them."),
        agent("I will profile the table first."),
        call("run_sql", "48211", sql="SELECT count(*) FROM customers_raw"),
        call("apply_step", "removed 1,204 rows", table="customers_clean", step="dedupe", by="email"),
        call("validate_table", "FAILED: 311 rows with invalid phone", ok=False, table="customers_clean", suite="contact"),
        user("Use the E.164 format for phones. And do not touch the column notes."),
        call("apply_step", "normalised 40,118 phones", table="customers_clean", step="normalise_phone", format="E.164"),
        call("validate_table", "FAILED: 12 rows with invalid phone", ok=False, table="customers_clean", suite="contact"),
        call("apply_step", "normalised 12 phones", table="customers_clean", step="normalise_phone", format="E.164 strict"),
        call("validate_table", "passed: 0 problems in 47,007 rows", table="customers_clean", suite="contact"),
        call("write_mapping", "saved", file="maps/countries.json", content='{"UK": "GB", "Holland": "NL"}'),
        call("read_mapping", '{"UK": "GB", "Holland": "NL"}', file="maps/countries.json"),
        call("write_mapping", "saved", file="maps/countries.json", content='{"UK": "GB", "Holland": "NL", "Türkei": "TR"}'),
        call("validate_table", "FAILED: 5 countries unknown: Narnia, Atlantis, Utopia, Oz, Lilliput", ok=False,
             table="customers_clean", suite="country"),
        user("You may now touch the column notes: strip the HTML from it."),
        call("apply_step", "stripped HTML in 9,870 rows of notes", table="customers_clean", step="strip_html", column="notes"),
        call("set_option", "ok", name="fuzzy_threshold", value=0.8),
        call("apply_step", "merged 3,950 pairs, 212 look wrong", table="customers_clean", step="fuzzy_merge", run=1),
        call("undo_step", "undone", table="customers_clean", step="fuzzy_merge", run=1),
        call("set_option", "ok", name="fuzzy_threshold", value=0.93),
        agent("Fuzzy merging at 0.8 made wrong pairs, so I undid it."),
        call("fetch_url", "403 Forbidden", ok=False, url="https://data.geonames.org/iso3166.csv"),
        call("fetch_url", "403 Forbidden", ok=False, url="https://data.geonames.org/iso3166.csv"),
        call("fetch_url", "403 Forbidden", ok=False, url="https://data.geonames.org/iso3166.csv"),
        call("export_table", "wrote 47,007 rows to out/customers_2026-05.parquet", table="customers_clean",
             file="out/customers_2026-05.parquet"),
        user("Send nothing to the marketing bucket before Friday."),
        call("run_sql", "0 rows violate", sql="SELECT * FROM customers_clean WHERE email IS NULL"),
    ]  # fmt: skip
    essentials = [
        ("never drop rows", "Japan"),
        ("do not touch the column notes", "may now touch the column notes"),
        ("E.164 format",),
        ("marketing bucket", "before Friday"),
        ("customers_clean", "contact", "0 problems in 47,007"),
        ("country", "5 countries unknown"),
        ("maps/countries.json", "Türkei"),
        ("fuzzy_threshold", "0.93"),
        ("fuzzy_merge", "undone"),
        ("iso3166.csv", "403 Forbidden"),
        ("iso3166.csv", "3 times"),
        ("out/customers_2026-05.parquet", "47,007 rows"),
        ("strip_html", "9,870 rows"),
        ("dedupe", "1,204 rows"),
    ]
    return Story("data cleaning", "Clean the customer table", "customers_clean passes every suite and is exported",
                 interleave(key, noise, 84, 11), essentials)  # fmt: skip


def operations() -> Story:
    def noise(chance: random.Random, number: int) -> Event:
        host = chance.choice(("web-1", "web-2", "web-3", "cache-1", "queue-1"))
        kind = number % 4
        if kind == 0:
            return call(
                "shell", table(chance, f"top on {host}", 14), command=f"ssh {host} top -b -n1 | head -{number + 5}"
            )
        if kind == 1:
            return call("get_metrics", table(chance, "t value", 10), host=host, window=f"{number + 1}m")
        if kind == 2:
            return call("shell", table(chance, "log", 16), command=f"ssh {host} journalctl -n {number + 20}")
        return call("shell", table(chance, "ls", 6), command=f"ls /etc/nginx/sites-{number}")

    key = [
        user("The checkout is slow since the deploy of 14:00. Find out why and fix it. Do not restart db-primary."),
        call("shell", "p95 4.8 s", command="curl -s status/latency"),
        call("read_file", "pool_size: 10\ntimeout: 30", path="/etc/app/db.yaml"),
        call("write_file", "ok", path="/etc/app/db.yaml", content="pool_size: 40\ntimeout: 30"),
        call("shell", "deployed app v2.3.1 to staging", command="deploy staging v2.3.1"),
        call("shell", "health: 2 of 3 instances unhealthy", ok=False, command="check-health staging"),
        call("write_file", "ok", path="/etc/app/db.yaml", content="pool_size: 25\ntimeout: 10"),
        call("shell", "deployed app v2.3.2 to staging", command="deploy staging v2.3.2"),
        call("shell", "health: 3 of 3 instances healthy", command="check-health staging"),
        user("Leave the firewall rules as they are, security is auditing them this week."),
        call("shell", "ERROR: certificate for api.shop.example expires in 2 days", ok=False, command="check-certs"),
        call("shell", "renewal failed: DNS challenge timed out", ok=False, command="certbot renew api.shop.example"),
        call("shell", "renewal failed: DNS challenge timed out", ok=False, command="certbot renew api.shop.example"),
        agent("The renewal needs the DNS token, which I do not have."),
        call("set_flag", "flag set", flag="new_cart", value="off"),
        call("shell", "p95 1.1 s", command="curl -s status/latency"),
        call("set_flag", "flag set", flag="new_cart", value="on"),
        call("shell", "p95 1.2 s", command="curl -s status/latency"),
        call("create_ticket", "OPS-771 created", title="Index on orders.customer_id", priority="high"),
        call(
            "shell", "CREATE INDEX CONCURRENTLY: done in 312 s", command="psql -c 'CREATE INDEX ON orders(customer_id)'"
        ),
        user("The audit is over, so open port 8443 on the firewall for the partner."),
        call("shell", "rule added: allow 8443 from 203.0.113.0/24", command="fw allow 8443 203.0.113.0/24"),
        call("shell", "p95 0.4 s", command="curl -s status/latency"),
        call("shell", "replica db-replica-2 lags 95 s", ok=False, command="check-replication"),
        user("Deploy to production only after 22:00."),
        call("update_ticket", "OPS-771 closed", ticket="OPS-771", status="closed"),
    ]
    essentials = [
        ("do not restart db-primary",),
        ("leave the firewall rules", "open port 8443"),
        ("production only after 22:00",),
        ("/etc/app/db.yaml", "pool_size: 25"),
        ("check-health staging", "3 of 3 instances healthy"),
        ("deploy staging v2.3.2",),
        ("api.shop.example", "expires in 2 days"),
        ("certbot renew", "DNS challenge timed out"),
        ("certbot renew", "2 times"),
        ("new_cart", "on"),
        ("status/latency", "p95 0.4 s"),
        ("orders(customer_id)", "done in 312 s"),
        ("allow 8443", "203.0.113.0/24"),
        ("db-replica-2", "lags 95 s"),
        ("OPS-771", "closed"),
    ]
    return Story("operations", "Make the checkout fast again", "p95 under 0.5 s in production, certificates valid",
                 interleave(key, noise, 84, 12), essentials)  # fmt: skip


def bookings() -> Story:
    def noise(chance: random.Random, number: int) -> Event:
        city = chance.choice(("Lyon", "Turin", "Basel", "Genoa"))
        kind = number % 3
        if kind == 0:
            return call("search_hotels", table(chance, f"hotels in {city}", 12), city=city, page=number)
        if kind == 1:
            return call(
                "search_trains", table(chance, f"trains {city}", 12), origin="Zürich", destination=city, page=number
            )
        return call("hotel_details", table(chance, "rooms", 8), hotel_id=f"H{number + 400}")

    key = [
        user("Plan our offsite in Turin for 14 people, 3 to 6 June. No flights, we go by train. Budget 9,000 euros."),
        call("create_trip", "trip T-88 created", title="Offsite Turin"),
        call("book_hotel", "booking B-501 confirmed, 14 rooms, 5,460 euros", hotel_id="H512", rooms=14, nights=3),
        call("book_train", "failed: only 9 seats left", ok=False, train="EC 35", seats=14),
        call("book_train", "failed: only 9 seats left", ok=False, train="EC 35", seats=14),
        call("book_train", "booking R-77 confirmed, 14 seats, 1,148 euros", train="EC 37", seats=14),
        user("Anna is vegetarian and Luc has a nut allergy, tell the restaurant."),
        call("reserve_table", "reservation D-9 for 14 on 4 June, 19:30", restaurant="Osteria Po", guests=14),
        call("add_note", "note saved", reservation="D-9", note="1 vegetarian, 1 nut allergy"),
        user("Do not book any activity on Wednesday."),
        call("book_activity", "booking A-3 confirmed: museum, 5 June, 210 euros", activity="museum", date="2026-06-05"),
        user("We are 13 now, Kim cannot come."),
        call("change_booking", "booking B-501 changed: 13 rooms, 5,070 euros", booking="B-501", rooms=13),
        call(
            "change_booking",
            "error: seats of group tickets cannot be changed online",
            ok=False,
            booking="R-77",
            seats=13,
        ),
        agent("The train company has to be called for the seat of Kim."),
        call("change_booking", "reservation D-9 changed: 13 guests", booking="D-9", guests=13),
        call(
            "book_activity", "booking A-4 confirmed: rafting, 4 June, 780 euros", activity="rafting", date="2026-06-04"
        ),
        call("cancel_booking", "booking A-4 cancelled, refund 780 euros", booking="A-4"),
        agent("Rafting is too dangerous for the group, so I cancelled it."),
        user("Wednesday is free after all: a city walk would be fine that day."),
        call(
            "book_activity",
            "booking A-6 confirmed: city walk, 3 June, 130 euros",
            activity="city walk",
            date="2026-06-03",
        ),
        call("get_invoice", "total so far 6,558 euros", trip="T-88"),
        call("send_invites", "sent to 13 people", trip="T-88", people=13),
        call("upload_file", "uploaded", file="agenda-v1.pdf", size=120),
        call("upload_file", "uploaded", file="agenda-v2.pdf", size=133),
        call("request_quote", "no answer yet", ok=False, company="Bus Rossi", date="2026-06-06"),
    ]
    essentials = [
        ("no flights", "by train", "9,000"),
        ("vegetarian", "nut allergy", "tell the restaurant"),
        ("do not book any activity on Wednesday", "Wednesday is free after all"),
        ("we are 13 now",),
        ("B-501", "13 rooms", "5,070"),
        ("R-77", "cannot be changed online"),
        ("EC 35", "only 9 seats"),
        ("EC 37", "14 seats"),
        ("D-9", "13 guests"),
        ("A-4", "cancelled"),
        ("city walk", "A-6"),
        ("museum", "A-3"),
        ("T-88", "sent to 13"),
        ("agenda-v2.pdf",),
        ("Bus Rossi", "no answer yet"),
        ("total so far 6,558",),
    ]
    return Story("bookings", "Plan the offsite", "everything booked within the budget",
                 interleave(key, noise, 86, 13), essentials)  # fmt: skip


def literature() -> Story:
    def noise(chance: random.Random, number: int) -> Event:
        topic = chance.choice(("sodium", "cathode", "dendrite", "anode", "electrolyte"))
        kind = number % 3
        if kind == 0:
            return call("search_papers", table(chance, f"papers on {topic}", 14), query=f"{topic} battery {number}")
        if kind == 1:
            return call(
                "read_abstract", table(chance, "abstract", 9), paper=f"arXiv:24{number:02}.{chance.randrange(10000):05}"
            )
        return call("list_citations", table(chance, "cited by", 10), paper=f"doi:10.1000/{number}")

    key = [
        user(
            "Write a review of solid-state sodium batteries since 2022. Cite peer-reviewed papers only, no preprints."
        ),
        call("save_outline", "saved", document="review.md", sections=["Intro", "Electrolytes", "Interfaces"]),
        call("extract_number", "conductivity 4.1 mS/cm at 25 °C", paper="Hayashi 2022", quantity="conductivity"),
        call(
            "write_section", "812 words", document="review.md", section="Electrolytes", text="Na3SbS4 reaches 3.0 mS/cm"
        ),
        call("check_citations", "2 of 11 citations do not resolve", ok=False, document="review.md"),
        call(
            "write_section",
            "840 words",
            document="review.md",
            section="Electrolytes",
            text="W-doped Na3SbS4 reaches 4.1 mS/cm (Hayashi 2022)",
        ),
        call("check_citations", "11 of 11 citations resolve", document="review.md"),
        user("Keep it under 3,000 words. Leave out lithium completely."),
        call("fetch_paper", "paywall", ok=False, paper="Wang 2023", source="publisher"),
        call("fetch_paper", "paywall", ok=False, paper="Wang 2023", source="publisher"),
        call("fetch_paper", "paywall", ok=False, paper="Wang 2023", source="library"),
        call("fetch_paper", "14 pages", paper="Deng 2024", source="library"),
        call("extract_number", "1,200 cycles at 0.5 C, 91 % left", paper="Deng 2024", quantity="cycle life"),
        call(
            "write_section",
            "655 words",
            document="review.md",
            section="Interfaces",
            text="Deng 2024: 1,200 cycles, 91 % left",
        ),
        call("make_figure", "figure saved", file="fig1.png", kind="ragone"),
        call("make_figure", "figure saved", file="fig1.png", kind="radar"),
        user("On second thought compare with lithium in one paragraph."),
        call(
            "write_section",
            "190 words",
            document="review.md",
            section="Lithium",
            text="Against LPSCl sodium sulfides are cheaper",
        ),
        call("count_words", "2,870 words", document="review.md"),
        call("translate_abstract", "saved", document="abstract_fr.md", language="fr"),
        call("delete_file", "deleted", file="abstract_fr.md"),
        agent("The French abstract is not needed by the journal."),
        call("check_style", "7 sentences over 40 words", ok=False, document="review.md"),
        call(
            "compare_values",
            "conflict: Park 2023 says 2.2 mS/cm, Hayashi 2022 says 4.1 mS/cm",
            left="Park 2023",
            right="Hayashi 2022",
        ),
        user("Send the draft to Mira before anybody else."),
        call("ask_expert", "no reply", ok=False, person="Prof. Adeyemi", question="dry rooms"),
    ]
    essentials = [
        ("peer-reviewed papers only", "no preprints"),
        ("under 3,000 words",),
        ("leave out lithium", "compare with lithium"),
        ("Mira", "before anybody else"),
        ("review.md", "11 of 11 citations resolve"),
        ("Electrolytes", "4.1 mS/cm"),
        ("Interfaces", "1,200 cycles"),
        ("Wang 2023", "paywall"),
        ("Wang 2023", "times"),
        ("Deng 2024", "91 % left"),
        ("fig1.png", "radar"),
        ("2,870 words",),
        ("abstract_fr.md", "deleted"),
        ("7 sentences over 40 words",),
        ("Park 2023", "2.2 mS/cm"),
        ("Adeyemi", "no reply"),
    ]
    return Story("literature", "Review solid-state sodium batteries", "a cited review under 3,000 words",
                 interleave(key, noise, 84, 14), essentials)  # fmt: skip


STORIES = (cleaning, operations, bookings, literature)
