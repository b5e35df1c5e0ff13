"""Bad nodes and values of an inventory, with every line that is said about each."""

from tests.unit.projects import Case, hosts

NODES = (
    Case(
        name="rank missing",
        edits=[hosts("          rank: 1\n", "")],
        says=[
            "inventory/my/hosts.yml:12: spark-2.rank: missing; give each node its place: 0 for the head, then 1, 2, …"
        ],
    ),
    Case(
        name="rank twice",
        edits=[hosts("          rank: 1\n", "          rank: 0\n")],
        says=["inventory/my/hosts.yml:15: spark-2.rank: 0 is the rank of spark-1 too; each node has its own"],
    ),
    Case(
        name="rank gap",
        edits=[hosts("          rank: 1\n", "          rank: 2\n")],
        says=[
            "inventory/my/hosts.yml:15: spark-2.rank: rank 1 is missing; ranks are 0 for the head, then 1, 2, …"
        ],
    ),
    Case(
        name="rank that is text",
        edits=[hosts("          rank: 1\n", '          rank: "1"\n')],
        says=[
            'inventory/my/hosts.yml:15: spark-2.rank: a whole number is expected, found "1"; take the quotes away'
        ],
    ),
    Case(
        name="rank below zero",
        edits=[hosts("          rank: 1\n", "          rank: -1\n")],
        says=["inventory/my/hosts.yml:15: spark-2.rank: a number from 0 to 63 is expected, found -1"],
    ),
    Case(
        name="rank zero-padded",
        edits=[hosts("          rank: 1\n", "          rank: 01\n")],
        says=['inventory/my/hosts.yml:15: spark-2.rank: zero-padded; drop the zeros, or quote it: "01"'],
    ),
    Case(
        name="no local node",
        edits=[hosts("          ansible_connection: local\n", "")],
        says=[
            "inventory/my/hosts.yml:8: spark-1.ansible_connection: missing; rank 0 is where sparkyard runs: write local"
        ],
    ),
    Case(
        name="head by ssh",
        edits=[hosts("ansible_connection: local", "ansible_connection: ssh")],
        says=[
            "inventory/my/hosts.yml:9: spark-1.ansible_connection: rank 0 is where sparkyard runs: write local"
        ],
    ),
    Case(
        name="worker local too",
        edits=[hosts("          ansible_host: spark-2.local\n", "          ansible_connection: local\n")],
        says=[
            "inventory/my/hosts.yml:13: spark-2.ansible_connection: only rank 0 (spark-1) is local: sparkyard runs on the head"
        ],
    ),
    Case(
        name="link missing",
        edits=[
            hosts(
                "          link: {address: 10.0.0.2, interface: enp1s0f0np0, hcas: [rocep1s0f0, roceP2p1s0f0]}\n",
                "",
            )
        ],
        says=["inventory/my/hosts.yml:12: spark-2.link: missing; write link: {address, interface, hcas}"],
    ),
    Case(
        name="link cut short",
        edits=[hosts("address: 10.0.0.2, interface: enp1s0f0np0,", "address: 10.0.0.2,")],
        says=[
            "inventory/my/hosts.yml:16: spark-2.link.interface: missing: the network interface of the link, such as enp1s0f1np1"
        ],
    ),
    Case(
        name="link that is text",
        edits=[
            hosts(
                "link: {address: 10.0.0.2, interface: enp1s0f0np0, hcas: [rocep1s0f0, roceP2p1s0f0]}",
                "link: 10.0.0.2",
            )
        ],
        says=[
            'inventory/my/hosts.yml:16: spark-2.link: a mapping of address, interface, hcas is expected, found "10.0.0.2"'
        ],
    ),
    Case(
        name="address out of range",
        edits=[hosts("10.0.0.2", "10.0.0.256")],
        says=[
            'inventory/my/hosts.yml:16: spark-2.link.address: an IPv4 address is expected, found "10.0.0.256"'
        ],
    ),
    Case(
        name="address zero-padded",
        edits=[hosts("10.0.0.2", "10.0.0.02")],
        says=[
            'inventory/my/hosts.yml:16: spark-2.link.address: an IPv4 address without zero-padding is expected, found "10.0.0.02"'
        ],
    ),
    Case(
        name="address with a mask",
        edits=[hosts("10.0.0.2", "10.0.0.2/24")],
        says=[
            'inventory/my/hosts.yml:16: spark-2.link.address: an IPv4 address is expected, found "10.0.0.2/24"'
        ],
    ),
    Case(
        name="address twice",
        edits=[hosts("10.0.0.2", "10.0.0.1")],
        says=[
            "inventory/my/hosts.yml:16: spark-2.link.address: 10.0.0.1 belongs to spark-1 too; each node has its own"
        ],
    ),
    Case(
        name="address left open",
        edits=[hosts("10.0.0.2", "10.0.0.x")],
        says=[
            'inventory/my/hosts.yml:16: spark-2.link.address: "10.0.0.x" is a placeholder; put the real value there'
        ],
    ),
    Case(
        name="hcas as text",
        edits=[hosts("hcas: [rocep1s0f0, roceP2p1s0f0]", "hcas: rocep1s0f0")],
        says=[
            'inventory/my/hosts.yml:16: spark-2.link.hcas: a list such as [rocep1s0f1, roceP2p1s0f1] is expected, found "rocep1s0f0"'
        ],
    ),
    Case(
        name="hcas twice",
        edits=[hosts("hcas: [rocep1s0f0, roceP2p1s0f0]", "hcas: [rocep1s0f0, rocep1s0f0]")],
        says=["inventory/my/hosts.yml:16: spark-2.link.hcas: rocep1s0f0 stands there twice"],
    ),
    Case(
        name="host name left open",
        edits=[hosts("spark-2.local", "CHANGEME")],
        says=[
            'inventory/my/hosts.yml:13: spark-2.ansible_host: "CHANGEME" is a placeholder; put the real value there'
        ],
    ),
    Case(
        name="user left open",
        edits=[hosts("ansible_user: spark", "ansible_user: <your user>")],
        says=[
            'inventory/my/hosts.yml:14: spark-2.ansible_user: "<your user>" is a placeholder; put the real value there'
        ],
    ),
    Case(
        name="port out of range",
        edits=[hosts("ansible_user: spark\n", "ansible_user: spark\n          ansible_port: 70000\n")],
        says=[
            "inventory/my/hosts.yml:15: spark-2.ansible_port: a number from 1 to 65535 is expected, found 70000"
        ],
    ),
    Case(
        name="port that yaml reads in base 60",
        edits=[hosts("ansible_user: spark\n", "ansible_user: spark\n          ansible_port: 22:22\n")],
        says=[
            'inventory/my/hosts.yml:15: spark-2.ansible_port: YAML reads 22:22 in base 60; quote it: "22:22"'
        ],
    ),
    Case(
        name="user that yaml reads as false",
        edits=[hosts("ansible_user: spark\n", "ansible_user: off\n")],
        says=[
            'inventory/my/hosts.yml:14: spark-2.ansible_user: YAML reads off as false; write false, or quote it: "off"'
        ],
    ),
    Case(
        name="user that is a number",
        edits=[hosts("ansible_user: spark\n", "ansible_user: 1000\n")],
        says=[
            'inventory/my/hosts.yml:14: spark-2.ansible_user: text is expected, found the number 1000; quote it: "1000"'
        ],
    ),
    Case(
        name="user that is nothing",
        edits=[hosts("ansible_user: spark\n", "ansible_user: ~\n")],
        says=[
            'inventory/my/hosts.yml:14: spark-2.ansible_user: YAML reads ~ as nothing; write null, or quote it: "~"'
        ],
    ),
    Case(
        name="user left empty",
        edits=[hosts("ansible_user: spark\n", "ansible_user:\n")],
        says=["inventory/my/hosts.yml:14: spark-2.ansible_user: text is expected, found nothing"],
    ),
    Case(
        name="root relative",
        edits=[hosts("    lane: A\n", "    lane: A\n    root: data/sparkyard\n")],
        says=[
            'inventory/my/hosts.yml:4: all.vars.root: an absolute path or ~/… is expected, found "data/sparkyard"'
        ],
    ),
    Case(
        name="root in tmp",
        edits=[hosts("    lane: A\n", "    lane: A\n    root: /tmp/sparkyard\n")],
        says=[
            'inventory/my/hosts.yml:4: all.vars.root: "/tmp/sparkyard" is lost at a reboot; choose another folder'
        ],
    ),
    Case(
        name="root with dots",
        edits=[hosts("    lane: A\n", "    lane: A\n    root: /data/../etc\n")],
        says=['inventory/my/hosts.yml:4: all.vars.root: a path without .. is expected, found "/data/../etc"'],
    ),
    Case(
        name="models is the whole home",
        edits=[hosts("    lane: A\n", "    lane: A\n    models: ~/\n")],
        says=[
            'inventory/my/hosts.yml:4: all.vars.models: "~/" is a whole disk or home; choose a folder below it'
        ],
    ),
    Case(
        name="hub endpoint without a scheme",
        edits=[hosts("    lane: A\n", "    lane: A\n    hub_endpoint: hf-mirror.example\n")],
        says=[
            'inventory/my/hosts.yml:4: all.vars.hub_endpoint: an http:// or https:// URL is expected, found "hf-mirror.example"'
        ],
    ),
    Case(
        name="lab that is text",
        edits=[hosts("    lane: A\n", '    lane: A\n    lab: "yes"\n')],
        says=['inventory/my/hosts.yml:4: all.vars.lab: true or false is expected, found "yes"'],
    ),
    Case(
        name="stand_in that yaml 1.1 reads as true",
        edits=[hosts("    lane: A\n", "    lane: A\n    stand_in: yes\n")],
        says=[
            'inventory/my/hosts.yml:4: all.vars.stand_in: YAML reads yes as true; write true, or quote it: "yes"'
        ],
    ),
)
