"""Bad lanes, settings, --set and environment, with every line that is said about each."""

from tests.unit.projects import HOSTS, Case, hosts, recipe

SETTINGS = (
    Case(
        name="lane that no recipe has",
        edits=[hosts("    lane: A\n", "    lane: Kit\n")],
        says=['inventory/my/hosts.yml:3: lane: "Kit" is not a known lane (did you mean kit?)'],
    ),
    Case(
        name="lane not the same everywhere",
        files={"inventory/my/host_vars/spark-2.yml": "lane: kit\n"},
        says=[
            "inventory/my/host_vars/spark-2.yml:1: lane: not the same as on spark-1; it belongs to the whole inventory: all: vars:"
        ],
    ),
    Case(
        name="lane for some nodes",
        edits=[
            hosts("    lane: A\n", ""),
            hosts("          rank: 0\n", "          rank: 0\n          lane: A\n"),
        ],
        says=[
            "inventory/my/hosts.yml:10: lane: set for spark-1 but not for spark-2; it belongs to the whole inventory: all: vars:"
        ],
    ),
    Case(
        name="revert_to that no recipe has",
        edits=[hosts("revert_to: kit", "revert_to: kti")],
        says=['inventory/my/hosts.yml:4: revert_to: "kti" is not a known lane (did you mean kit?)'],
    ),
    Case(
        name="settings of an unknown lane",
        edits=[hosts("          A: {context: 4096}", "          Z: {context: 4096}")],
        says=["inventory/my/hosts.yml:19: lanes.Z: not a known lane; known: A, kit"],
    ),
    Case(
        name="lanes as a list",
        edits=[hosts("        lanes:\n          A: {context: 4096}", "        lanes: [A]")],
        says=["inventory/my/hosts.yml:18: sparks.vars.lanes: a mapping of lanes is expected, found a list"],
    ),
    Case(
        name="lane settings that are text",
        edits=[hosts("A: {context: 4096}", "A: fast")],
        says=[
            'inventory/my/hosts.yml:19: sparks.vars.lanes.A: a mapping of the lane\'s settings is expected, found "fast"'
        ],
    ),
    Case(
        name="unknown setting",
        edits=[hosts("A: {context: 4096}", "A: {contxt: 4096}")],
        says=["inventory/my/hosts.yml:19: lanes.A.contxt: not a known setting (did you mean context?)"],
    ),
    Case(
        name="setting of the wrong type",
        edits=[hosts("A: {context: 4096}", 'A: {context: "4096"}')],
        says=[
            'inventory/my/hosts.yml:19: lanes.A.context: a whole number is expected, found "4096"; take the quotes away'
        ],
    ),
    Case(
        name="setting with an underscore",
        edits=[hosts("A: {context: 4096}", "A: {context: 1_000}")],
        says=[
            'inventory/my/hosts.yml:19: sparks.vars.lanes.A.context: a number with _ in it; write 1000, or quote it: "1_000"'
        ],
    ),
    Case(
        name="setting with an exponent",
        edits=[hosts("A: {context: 4096}", "A: {context: 1e3}")],
        says=[
            'inventory/my/hosts.yml:19: sparks.vars.lanes.A.context: a number to some readers; write it out, or quote it: "1e3"'
        ],
    ),
    Case(
        name="setting too small",
        edits=[hosts("A: {context: 4096}", "A: {context: 16}")],
        says=["inventory/my/hosts.yml:19: lanes.A.context: at least 256 is expected, found 16"],
    ),
    Case(
        name="setting too large",
        edits=[hosts("A: {context: 4096}", "A: {rate: 1.5}")],
        says=["inventory/my/hosts.yml:19: lanes.A.rate: at most 1 is expected, found 1.5"],
    ),
    Case(
        name="setting not among the choices",
        edits=[hosts("A: {context: 4096}", "A: {mode: exat}")],
        says=[
            'inventory/my/hosts.yml:19: lanes.A.mode: fast or exact is expected, found "exat" (did you mean exact?)'
        ],
    ),
    Case(
        name="setting that is null",
        edits=[hosts("A: {context: 4096}", "A: {context: null}")],
        says=["inventory/my/hosts.yml:19: lanes.A.context: a whole number is expected, found nothing"],
    ),
    Case(
        name="setting that is a mapping",
        edits=[hosts("A: {context: 4096}", "A: {context: {tokens: 4096}}")],
        says=["inventory/my/hosts.yml:19: lanes.A.context.tokens: one value is expected, found a mapping"],
    ),
    Case(
        name="flag that is a number",
        edits=[hosts("A: {context: 4096}", "A: {expose: 1}")],
        says=["inventory/my/hosts.yml:19: lanes.A.expose: true or false is expected, found the number 1"],
    ),
    Case(
        name="text that is a flag",
        edits=[hosts("A: {context: 4096}", "A: {mode: off}")],
        says=[
            'inventory/my/hosts.yml:19: sparks.vars.lanes.A.mode: YAML reads off as false; write false, or quote it: "off"'
        ],
    ),
    Case(
        name="secret of the wrong type is not shown",
        edits=[hosts("A: {context: 4096}", "A: {api_key: 123456}")],
        says=[
            'inventory/my/hosts.yml:19: lanes.A.api_key: text is expected, found the number ********; quote it: "********"'
        ],
    ),
    Case(
        name="setting that does not fit its pattern",
        edits=[
            recipe(
                "default: fast, choices: [fast, exact]",
                "default: fast, pattern: '[a-z]+', looks_like: one word",
            ),
            hosts("A: {context: 4096}", 'A: {mode: "two\\nlines"}'),
        ],
        says=['inventory/my/hosts.yml:19: lanes.A.mode: one word is expected, found "two\\nlines"'],
    ),
    Case(
        name="secret that does not fit its pattern is not shown, in no part",
        edits=[
            recipe(
                "default: null, secret: true",
                "default: null, pattern: '[a-z]{60,}', looks_like: sixty letters, secret: true",
            ),
            hosts("A: {context: 4096}", f"A: {{api_key: {'k' * 50 + ' x'}}}"),
        ],
        says=[
            "inventory/my/hosts.yml:19: lanes.A.api_key: sixty letters is expected, found another text of 52 characters"
        ],
    ),
    Case(
        name="pattern that is none, and one without words",
        edits=[recipe("default: fast, choices: [fast, exact]", "default: fast, pattern: '(fast'")],
        says=[
            "recipes/a/recipe.yml:6: settings.mode: `pattern` and `looks_like`, its meaning in words, come together",
            "recipes/a/recipe.yml:6: settings.mode.pattern: not a pattern: missing ), unterminated subpattern (at 0)",
        ],
    ),
    Case(
        name="fault in a setting of another lane",
        edits=[hosts("A: {context: 4096}", "kit: {window: wide}")],
        says=['inventory/my/hosts.yml:19: lanes.kit.window: a whole number is expected, found "wide"'],
    ),
    Case(
        name="env that is a number",
        edits=[hosts("A: {context: 4096}", "A: {env: {NCCL_IB_TC: 3}}")],
        says=[
            'inventory/my/hosts.yml:19: lanes.A.env.NCCL_IB_TC: text is expected, found the number 3; quote it: "3"'
        ],
    ),
    Case(
        name="GID index for all nodes",
        edits=[hosts("A: {context: 4096}", 'A: {env: {NCCL_IB_GID_INDEX: "3"}, gid_index: 3}')],
        says=[
            f"inventory/my/hosts.yml:19: lanes.A.{key}: GID indexes are discovered at each start; take it out"
            for key in ("env.NCCL_IB_GID_INDEX", "gid_index")
        ],
    ),
    Case(
        name="HCAs for all nodes",
        edits=[hosts("A: {context: 4096}", "A: {env: {NCCL_IB_HCA: rocep1s0f1}, hcas: [rocep1s0f1]}")],
        says=[
            f"inventory/my/hosts.yml:19: lanes.A.{key}: HCAs are each node's own; set its link.hcas"
            for key in ("env.NCCL_IB_HCA", "hcas")
        ],
    ),
    Case(
        name="a GID index or HCAs for every lane",
        edits=[
            hosts("A: {context: 4096}", "A: {context: 4096}\n        gid_index: 3\n        NCCL_IB_HCA: x")
        ],
        says=[
            "inventory/my/hosts.yml:20: sparks.vars.gid_index: GID indexes are discovered at each start; take it out",
            "inventory/my/hosts.yml:21: sparks.vars.NCCL_IB_HCA: HCAs are each node's own; set its link.hcas",
        ],
    ),
    Case(
        name="set of a GID index and of an empty variable",
        sets=["env.NCCL_IB_GID_INDEX=3", "env.GLOO_SOCKET_IFNAME="],
        says=[
            "--set: env.GLOO_SOCKET_IFNAME: empty is not unset for its reader; leave it out",
            "--set: env.NCCL_IB_GID_INDEX: GID indexes are discovered at each start; take it out",
        ],
    ),
    Case(
        name="empty variables of the fabric",
        edits=[hosts("A: {context: 4096}", 'A: {env: {NCCL_DEBUG: "", B12X_PEER: "", EMPTY: ""}}')],
        says=[
            f"inventory/my/hosts.yml:19: lanes.A.env.{name}: empty is not unset for its reader; leave it out"
            for name in ("B12X_PEER", "NCCL_DEBUG")
        ],
    ),
    Case(
        name="env that is a flag",
        edits=[hosts("A: {context: 4096}", "A: {env: {EXPANDABLE: true}}")],
        says=[
            'inventory/my/hosts.yml:19: lanes.A.env.EXPANDABLE: text is expected, found true; quote it: "true"'
        ],
    ),
    Case(
        name="env that is a list",
        edits=[hosts("A: {context: 4096}", "A: {env: [NCCL_DEBUG]}")],
        says=[
            "inventory/my/hosts.yml:19: lanes.A.env: a mapping of names and texts is expected, found a list"
        ],
    ),
    Case(
        name="setting not the same on all nodes",
        files={"inventory/my/host_vars/spark-2.yml": "lanes: {A: {context: 8192}}\n"},
        says=[
            "inventory/my/host_vars/spark-2.yml:1: lanes.A.context: 8192 on spark-2 but 4096 on spark-1; a lane has one value"
        ],
    ),
    Case(
        name="setting on one node only",
        edits=[hosts("A: {context: 4096}", "kit: {}")],
        files={"inventory/my/host_vars/spark-2.yml": "lanes: {A: {context: 8192}}\n"},
        says=[
            "inventory/my/host_vars/spark-2.yml:1: lanes.A.context: set for spark-2 but not for spark-1; a lane has one value"
        ],
    ),
    Case(
        name="nodes that are text",
        edits=[hosts("A: {context: 4096}", "A: {nodes: spark-1}")],
        says=['inventory/my/hosts.yml:19: lanes.A.nodes: a list of node names is expected, found "spark-1"'],
    ),
    Case(
        name="nodes with an unknown one",
        edits=[hosts("A: {context: 4096}", "A: {nodes: [spark-1, spark-3]}")],
        says=[
            'inventory/my/hosts.yml:19: lanes.A.nodes: "spark-3" is not a known node (did you mean spark-2?)'
        ],
    ),
    Case(
        name="nodes too few",
        edits=[hosts("A: {context: 4096}", "A: {nodes: [spark-1]}")],
        says=["inventory/my/hosts.yml:19: lanes.A.nodes: the lane needs 2 to 4 nodes, found 1"],
    ),
    Case(
        name="nodes out of order",
        edits=[hosts("A: {context: 4096}", "A: {nodes: [spark-2, spark-1]}")],
        says=["inventory/my/hosts.yml:19: lanes.A.nodes: not in rank order; write [spark-1, spark-2]"],
    ),
    Case(
        name="nodes twice",
        edits=[hosts("A: {context: 4096}", "A: {nodes: [spark-1, spark-1]}")],
        says=["inventory/my/hosts.yml:19: lanes.A.nodes: a node stands there twice: spark-1, spark-1"],
    ),
    Case(
        name="too few nodes for the recipe",
        edits=[recipe("{at_least: 2, at_most: 4}", "{at_least: 4, at_most: 4}")],
        says=["inventory/my: lane A needs 4 nodes, the inventory has 2"],
    ),
    Case(
        name="no nodes",
        files={HOSTS: "all:\n  vars: {lane: A}\n"},
        says=["inventory/my/hosts.yml:1: no nodes; write them below hosts:"],
    ),
    Case(
        name="set without a sign", sets=["context"], says=['--set: NAME=VALUE is expected, found "context"']
    ),
    Case(
        name="set twice",
        sets=["context=1024", "context=2048"],
        says=["--set: context: given twice; keep one"],
    ),
    Case(
        name="set of an unknown setting",
        sets=["contex=1024"],
        says=["--set: contex: not a known setting (did you mean context?)"],
    ),
    Case(
        name="set of a wrong number",
        sets=["context=4k"],
        says=['--set: context: a whole number is expected, found "4k"'],
    ),
    Case(
        name="set of a number too small",
        sets=["context=16"],
        says=["--set: context: at least 256 is expected, found 16"],
    ),
    Case(
        name="set of a wrong flag",
        sets=["expose=yes"],
        says=['--set: expose: true or false is expected, found "yes"'],
    ),
    Case(
        name="set of a wrong choice",
        sets=["mode=exakt"],
        says=['--set: mode: fast or exact is expected, found "exakt" (did you mean exact?)'],
    ),
    Case(name="set of the lane", sets=["lane=kit"], says=["--set: lane: not a setting; type --lane=kit"]),
    Case(
        name="set of an env without a name",
        sets=["env.=x"],
        says=['--set: env.: "" is no name of an environment variable'],
    ),
    Case(
        name="set of a bad root",
        sets=["root=/tmp/x"],
        says=['--set: root: "/tmp/x" is lost at a reboot; choose another folder'],
    ),
    Case(
        name="set of a placeholder",
        sets=["mode=<mode>"],
        says=['--set: mode: "<mode>" is a placeholder; put the real value there'],
    ),
    Case(
        name="environment with a wrong number",
        environ={"SPARKYARD_PORT": "http"},
        says=['environment: SPARKYARD_PORT: a whole number is expected, found "http"'],
    ),
    Case(
        name="environment with a secret of the wrong type is not shown",
        environ={"SPARKYARD_API_KEY": "{{ s3cr3t }}"},
        says=["environment: SPARKYARD_API_KEY: Jinja is not evaluated here; write the value out"],
    ),
    Case(
        name="environment with an unknown name",
        environ={"SPARKYARD_CONTEX": "1024"},
        says=[
            "environment: SPARKYARD_CONTEX: not a known variable of sparkyard (did you mean SPARKYARD_CONTEXT?)"
        ],
    ),
    Case(
        name="environment with a wrong lane",
        environ={"SPARKYARD_LANE": "kitt"},
        says=['environment: SPARKYARD_LANE: "kitt" is not a known lane (did you mean kit?)'],
    ),
    Case(name="asked for an unknown lane", lane="B", says=['--lane: "B" is not a known lane; known: A, kit']),
    Case(
        name="everything at once",
        edits=[
            hosts("          rank: 0\n", "          rank: 00\n"),
            hosts("10.0.0.2", "10.0.0.1"),
            recipe("timeout: 600", "timeut: 600"),
            hosts("A: {context: 4096}", "A: {mode: exat}"),
        ],
        files={"inventory/my/group_vars/sparks.yml": "ansible_become: true\n"},
        sets=["contex=1"],
        environ={"SPARKYARD_PROT": "1"},
        says=[
            "--set: contex: not a known setting (did you mean context?)",
            "environment: SPARKYARD_PROT: not a known variable of sparkyard (did you mean SPARKYARD_PORT?)",
            "inventory/my/group_vars/sparks.yml:1: ansible_become: not supported: sparkyard never becomes root",
            'inventory/my/hosts.yml:10: spark-1.rank: zero-padded; drop the zeros, or quote it: "00"',
            "inventory/my/hosts.yml:16: spark-2.link.address: 10.0.0.1 belongs to spark-1 too; each node has its own",
            'inventory/my/hosts.yml:19: lanes.A.mode: fast or exact is expected, found "exat" (did you mean exact?)',
            "recipes/a/recipe.yml:44: ready.timeout: missing",
            "recipes/a/recipe.yml:47: ready.timeut: not a known key (did you mean timeout?)",
        ],
    ),
)
