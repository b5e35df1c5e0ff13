"""Bad recipes: files, services, checks, limits and YAML, with every line that is said about each."""

from tests.unit.projects import RECIPE, Case, recipe

PARTS = (
    Case(
        name="no Dockerfile",
        gone=["recipes/a/Dockerfile"],
        says=["recipes/a/recipe.yml:22: image.build.dockerfile: no Dockerfile in the recipe's folder"],
    ),
    Case(
        name="Dockerfile outside",
        edits=[recipe("dockerfile: Dockerfile", "dockerfile: ../Dockerfile")],
        says=[
            'recipes/a/recipe.yml:22: image.build.dockerfile: a relative path without .. is expected, found "../Dockerfile"'
        ],
    ),
    Case(
        name="file with no content",
        edits=[recipe("    template: a.json.j2\n", "")],
        says=["recipes/a/recipe.yml:29: files.config: exactly one of `template` and `values` is needed"],
    ),
    Case(
        name="template not there",
        gone=["recipes/a/a.json.j2"],
        says=[
            "recipes/a/recipe.yml:31: files.config.template: no file a.json.j2 in the recipe's folder or in templates/"
        ],
    ),
    Case(
        name="template outside",
        edits=[recipe("template: a.json.j2", "template: ../../secret.j2")],
        says=[
            'recipes/a/recipe.yml:31: files.config.template: a relative path without .. is expected, found "../../secret.j2"'
        ],
    ),
    Case(
        name="template that does not parse",
        files={"recipes/a/a.json.j2": '{\n  "context": {{ lane.context }\n}\n'},
        says=[
            "recipes/a/recipe.yml:31: files.config.template: a.json.j2:2: not a Jinja template: unexpected '}'"
        ],
    ),
    Case(
        name="template with a secret in a readable file",
        files={"recipes/a/a.json.j2": '{"key": "{{ lane.api_key }}"}\n'},
        says=[
            "recipes/a/recipe.yml:31: files.config.template: it holds the secret setting api_key: the file needs secret: true"
        ],
    ),
    Case(
        name="file path relative",
        edits=[recipe('path: "{{ node.root }}/a.json"', "path: a.json")],
        says=[
            'recipes/a/recipe.yml:30: files.config.path: an absolute path or one that starts with {{ is expected, found "a.json"'
        ],
    ),
    Case(
        name="file path in tmp",
        edits=[recipe('path: "{{ node.root }}/a.json"', "path: /tmp/a.json")],
        says=[
            'recipes/a/recipe.yml:30: files.config.path: "/tmp/a.json" is lost at a reboot; choose another folder'
        ],
    ),
    Case(
        name="dialect unknown",
        edits=[recipe("dialect: docker-env", "dialect: docker")],
        says=[
            'recipes/a/recipe.yml:27: files.env.dialect: "docker" is not known here (did you mean docker-env?)'
        ],
    ),
    Case(
        name="values without a dialect",
        edits=[recipe("    dialect: docker-env\n", "")],
        says=["recipes/a/recipe.yml:24: files.env: `values` needs the dialect docker-env or shell"],
    ),
    Case(
        name="secret value in a readable file",
        edits=[recipe("    dialect: docker-env\n    secret: true\n", "    dialect: docker-env\n")],
        says=[
            "recipes/a/recipe.yml:26: files.env.values.KEY: the secret api_key is readable here; the file needs secret: true"
        ],
    ),
    Case(
        name="env of the recipe that is a flag",
        edits=[recipe("NCCL_DEBUG: WARN", "NCCL_DEBUG: true")],
        says=["recipes/a/recipe.yml:33: env.NCCL_DEBUG: text is expected, found true"],
    ),
    Case(
        name="env of the recipe that is a number",
        edits=[recipe("NCCL_DEBUG: WARN", "NCCL_IB_TC: 106")],
        says=[
            'recipes/a/recipe.yml:33: env.NCCL_IB_TC: text is expected, found the number 106; quote it: "106"'
        ],
    ),
    Case(
        name="no services",
        edits=[
            recipe(
                'services:\n  engine:\n    nodes: all\n    options: [--network, host]\n    env_files: [env]\n    mounts:\n      - {source: "{{ checkpoints.main.path }}", target: /models}\n    words: [serve, --context, "{{ lane.context }}"]\n    gate: {timeout: 60, log: "rank \\\\d+ ready"}\n',
                "services: {}\n",
            )
        ],
        says=["recipes/a/recipe.yml:34: services: at least one service is expected, or scripts instead"],
    ),
    Case(
        name="service on unknown nodes",
        edits=[recipe("    nodes: all\n", "    nodes: worker\n")],
        says=[
            'recipes/a/recipe.yml:36: services.engine.nodes: "worker" is not known here (did you mean workers?)'
        ],
    ),
    Case(
        name="env file unknown",
        edits=[recipe("env_files: [env]", "env_files: [envs]")],
        says=[
            "recipes/a/recipe.yml:38: services.engine.env_files.0: not a known entry of files (did you mean env?)"
        ],
    ),
    Case(
        name="env file in another dialect",
        edits=[recipe("env_files: [env]", "env_files: [config]")],
        says=[
            "recipes/a/recipe.yml:38: services.engine.env_files.0: files.config has the dialect plain; docker reads docker-env"
        ],
    ),
    Case(
        name="mount target relative",
        edits=[recipe("target: /models", "target: models")],
        says=[
            'recipes/a/recipe.yml:40: services.engine.mounts.0.target: an absolute path without .. is expected, found "models"'
        ],
    ),
    Case(
        name="mount source in tmp",
        edits=[recipe('source: "{{ checkpoints.main.path }}"', "source: /tmp/models")],
        says=[
            'recipes/a/recipe.yml:40: services.engine.mounts.0.source: "/tmp/models" is lost at a reboot; choose another folder'
        ],
    ),
    Case(
        name="mount target twice",
        edits=[recipe("    words: [serve", "      - {source: /data/x, target: /models}\n    words: [serve")],
        says=[
            "recipes/a/recipe.yml:41: services.engine.mounts.1.target: /models is the target of mounts.0 too"
        ],
    ),
    Case(
        name="secret among the words",
        edits=[recipe('"{{ lane.context }}"]', '"{{ lane.context }}", --api-key, "{{ lane.api_key }}"]')],
        says=[
            "recipes/a/recipe.yml:41: services.engine.words.4: the secret api_key is readable here; use env_files and secret: true"
        ],
    ),
    Case(
        name="secret among the options",
        edits=[
            recipe(
                "options: [--network, host]",
                "options: [--network, host, --env, \"KEY={{ lane['api_key'] }}\"]",
            )
        ],
        says=[
            "recipes/a/recipe.yml:37: services.engine.options.3: the secret api_key is readable here; use env_files and secret: true"
        ],
    ),
    Case(
        name="secret in the environment",
        edits=[recipe("NCCL_DEBUG: WARN", 'KEY: "{{ lane.api_key }}"')],
        says=[
            "recipes/a/recipe.yml:33: env.KEY: the secret api_key is readable here; use env_files and secret: true"
        ],
    ),
    Case(
        name="word that is a number",
        edits=[recipe("words: [serve,", "words: [serve, 8,")],
        says=[
            'recipes/a/recipe.yml:41: services.engine.words.1: text is expected, found the number 8; quote it: "8"'
        ],
    ),
    Case(
        name="word that does not parse",
        edits=[recipe('"{{ lane.context }}"]', '"{{ lane.context }"]')],
        says=["recipes/a/recipe.yml:41: services.engine.words.2: not a Jinja template: unexpected '}'"],
    ),
    Case(
        name="gate with two signs",
        edits=[recipe("gate: {timeout: 60,", 'gate: {timeout: 60, port: "1",')],
        says=["recipes/a/recipe.yml:42: services.engine.gate: exactly one of `log` and `port` is needed"],
    ),
    Case(
        name="gate with a wrong pattern",
        edits=[recipe("rank \\\\d+ ready", "rank (\\\\d+ ready")],
        says=[
            "recipes/a/recipe.yml:42: services.engine.gate.log: not a pattern: missing ), unterminated subpattern (at 5)"
        ],
    ),
    Case(
        name="order of unknown ranks",
        edits=[recipe("order: workers-first", "order: [[1, 2], [4]]")],
        says=["recipes/a/recipe.yml:43: order: each rank from 0 to 3 once is expected, found 1, 2, 4"],
    ),
    Case(
        name="order misspelt",
        edits=[recipe("order: workers-first", "order: worker-first")],
        says=[
            'recipes/a/recipe.yml:43: order: "worker-first" is not known here (did you mean workers-first?)'
        ],
    ),
    Case(
        name="check of one name twice",
        edits=[recipe("stop: {grace: 10}", "  - {name: chat, path: /health, expect: []}\nstop: {grace: 10}")],
        says=['recipes/a/recipe.yml:54: verify.1.name: "chat" is the name of verify.0 too'],
    ),
    Case(
        name="check with a wrong pattern",
        edits=[recipe('matches: "[a-z]+"', 'matches: "[a-z+"')],
        says=[
            "recipes/a/recipe.yml:53: verify.0.expect.0.matches: not a pattern: unterminated character set (at 0)"
        ],
    ),
    Case(
        name="check with a relative path",
        edits=[recipe("path: /v1/chat/completions", "path: v1/chat/completions")],
        says=[
            'recipes/a/recipe.yml:51: verify.0.path: a path that starts with / is expected, found "v1/chat/completions"'
        ],
    ),
    Case(
        name="check of no method",
        edits=[
            recipe("    path: /v1/chat/completions\n", "    path: /v1/chat/completions\n    method: PUT\n")
        ],
        says=['recipes/a/recipe.yml:52: verify.0.method: GET or POST is expected, found "PUT"'],
    ),
    Case(
        name="memory in gibibytes",
        edits=[recipe("memory: 103079215104", "memory: 96")],
        says=[
            "recipes/a/recipe.yml:55: limits.memory: 96 is less than 1 MiB; sizes are bytes: 96 GiB is 103079215104"
        ],
    ),
    Case(
        name="memory beyond reason",
        edits=[recipe("memory: 103079215104", "memory: 103079215104000")],
        says=["recipes/a/recipe.yml:55: limits.memory: 103079215104000 is more than 1 TiB; sizes are bytes"],
    ),
    Case(
        name="memory below zero",
        edits=[recipe("memory: 103079215104", "memory: -1")],
        says=["recipes/a/recipe.yml:55: limits.memory: at least 0 is expected, found -1"],
    ),
    Case(
        name="memory with a unit",
        edits=[recipe("memory: 103079215104", "memory: 96GiB")],
        says=['recipes/a/recipe.yml:55: limits.memory: a whole number is expected, found "96GiB"'],
    ),
    Case(
        name="guard as large as the memory",
        edits=[recipe("memory: 103079215104", "memory: 103079215104, guard: 103079215104")],
        says=[
            "recipes/a/recipe.yml:55: limits.guard: 103079215104 is not less than limits.memory (103079215104)"
        ],
    ),
    Case(
        name="guard without the memory of a start",
        edits=[recipe("memory: 103079215104", "guard: 5368709120")],
        says=[
            "recipes/a/recipe.yml:55: limits.guard: limits.memory is not given: a start must ask for more than 5368709120 bytes"
        ],
    ),
    Case(
        name="guard in GiB",
        edits=[recipe("memory: 103079215104", "memory: 103079215104, guard: 5")],
        says=[
            "recipes/a/recipe.yml:55: limits.guard: 5 is less than 1 MiB; sizes are bytes: 5 GiB is 5368709120"
        ],
    ),
    Case(
        name="rule that does not parse",
        edits=[recipe("must: lane.context > 0", "must: lane.context >")],
        says=[
            "recipes/a/recipe.yml:57: rules.0.must: not a Jinja template: unexpected 'end of print statement'"
        ],
    ),
    Case(
        name="anchor that is not there",
        edits=[recipe("title: an engine", "title: *engine")],
        says=["recipes/a/recipe.yml:2: title: *engine stands before its &engine, or there is none"],
    ),
    Case(
        name="merge of a text",
        edits=[recipe("stop: {grace: 10}", "stop: {<<: ten, grace: 10}")],
        says=["recipes/a/recipe.yml:54: stop: << takes a mapping or a list of mappings"],
    ),
    Case(
        name="key that yaml reads as true",
        edits=[recipe("  NCCL_DEBUG: WARN", "  on: WARN")],
        says=['recipes/a/recipe.yml:33: env: the key on is not text; quote it: "on"'],
    ),
    Case(
        name="key that is a number",
        edits=[recipe("  NCCL_DEBUG: WARN", "  1: WARN")],
        says=['recipes/a/recipe.yml:33: env: the key 1 is not text; quote it: "1"'],
    ),
    Case(
        name="key written twice",
        edits=[recipe("stop: {grace: 10}", "stop: {grace: 10}\nstop: {grace: 20}")],
        says=["recipes/a/recipe.yml:55: stop: written twice (first on line 54); keep one"],
    ),
    Case(
        name="date",
        edits=[recipe("title: an engine", "title: 2026-11-29")],
        says=['recipes/a/recipe.yml:2: title: YAML reads 2026-11-29 as a date; quote it: "2026-11-29"'],
    ),
    Case(
        name="hexadecimal",
        edits=[recipe("default: 2048", "default: 0x800")],
        says=[
            'recipes/a/recipe.yml:5: settings.context.default: write 0x800 as a plain decimal number, or quote it: "0x800"'
        ],
    ),
    Case(
        name="infinity",
        edits=[recipe("default: 0.5", "default: .inf")],
        says=[
            'recipes/a/recipe.yml:7: settings.rate.default: write .inf as a plain decimal number, or quote it: ".inf"'
        ],
    ),
    Case(
        name="folder of recipes not there",
        recipes=["more"],
        says=["more: there is no such folder of recipes"],
    ),
    Case(
        name="recipe that is not YAML",
        edits=[recipe("nodes: {at_least: 2, at_most: 4}", "nodes: {at_least: 2, at_most: 4")],
        says=["recipes/a/recipe.yml:4: not valid YAML: did not find expected ',' or '}'"],
    ),
    Case(
        name="recipe is an Ansible Vault file",
        files={RECIPE: "$ANSIBLE_VAULT;1.1;AES256\n6162\n"},
        lane="a",
        says=[
            "inventory/my/hosts.yml:19: lanes.A: not a known lane (did you mean a?)",
            "recipes/a/recipe.yml:1: Ansible Vault is not supported; keep secrets in the environment or a 0600 file",
        ],
    ),
)
