/** Extraction of keys from small specifications. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { extractKeys, type SpecKey } from '../../scripts/spec-keys/extract.ts'
import { SpecError } from '../../scripts/spec-keys/markdown.ts'
import { temporaryHome } from './temporary-home.ts'

function specOf(...lines: readonly string[]): string {
  return ['# Title', '## Resources and their fields', ...lines, '## Next', '`not_read`', ''].join('\n')
}

/** One key as one line of its facts, in the order of the columns below. */
function shortOf(key: SpecKey): string {
  const { type, unit, defaultValue, described, choices, aliasOf } = key
  const facts = [type, unit && `in ${unit}`, defaultValue && `= ${defaultValue}`, described && `as ${described}`]
  const flags = [key.required && 'required', key.exampleOnly && 'example', aliasOf && `alias of ${aliasOf}`]
  const said = [...facts, choices.length > 0 && `of ${choices.join('|')}`, ...flags].filter(fact => fact)
  return [`${key.repeated ? `[[${key.section}]]` : `[${key.section}]`} ${key.key}`, ...said].join(' ')
}

const TABLE = ['| Key | Type | Default | Meaning |', '|---|---|---|---|']

const READ: readonly (readonly [clause: string, lines: readonly string[], ...keys: readonly string[]])[] = [
  [
    'a row is a key: type, default, required',
    ['### A (`[a.b]`)', ...TABLE, '| c | string, required | x (a remark) | |', '| d | boolean | none | |'],
    '[a.b] c string = x required',
    '[a.b] d boolean = none',
  ],
  [
    'a heading with two sections gives both every key, a remark on the type only one',
    ['### A (`[[a.b]]` and `[a.c]`)', ...TABLE, '| d | integer | 1 | |', '| e | string (c, required) | 2 | |'],
    '[[a.b]] d integer = 1',
    '[a.c] d integer = 1',
    '[a.c] e string = 2 required',
  ],
  [
    'keys of a table without a section begin with their section, and a group applies to the names after it',
    ['### A', ...TABLE, '| a.b / c | string | built-in defaults | |', '| a.d.e, f | string | none | |'],
    '[a] b string as built-in defaults',
    '[a] c string as built-in defaults',
    '[a] d.e string = none',
    '[a] d.f string = none',
  ],
  [
    'the section of a heading is taken off its keys',
    ['### A (`[a]` and children)', ...TABLE, '| a.b.c | list of strings | none | |'],
    '[a] b.c list of strings = none',
  ],
  [
    'a star stands for listed members, also further down',
    [
      '### A (`[a]`)',
      ...TABLE,
      '| b.* and c.* (d, e) | string | some store; d X or Y | |',
      '| f.* | string | same | |',
    ],
    '[a] b.d string as some store of X|Y',
    '[a] b.e string as some store',
    '[a] c.d string as some store of X|Y',
    '[a] c.e string as some store',
    '[a] f.d string as some store of X|Y',
    '[a] f.e string as some store',
  ],
  [
    'several keys of a row have types and defaults of their own where there are as many',
    [
      '### A (`[a]`)',
      ...TABLE,
      '| b, c | string/integer | none | |',
      '',
      '| Section | Keys | Defaults |',
      '|---|---|---|',
      '| d.e | f, g | true, 15 minutes (or so, or less) |',
    ],
    '[a] b string = none',
    '[a] c integer = none',
    '[d.e] f = true',
    '[d.e] g = 15 minutes',
  ],
  [
    'the plain and the secured side have defaults of their own',
    ['### A (`[a.x_http]` and `[a.x_https]`)', ...TABLE, '| port | integer | 1 (plain), 2 (secured) | |'],
    '[a.x_http] port integer = 1',
    '[a.x_https] port integer = 2',
  ],
  [
    'another spelling has what the key has',
    ['### A (`[a]`)', '| Key | Default |', '|---|---|', '| b (also listed as c) | ["x,y"] |'],
    '[a] b = ["x,y"]',
    '[a] c = ["x,y"] alias of b',
  ],
  [
    'units and named values stand in the meaning',
    ['### A (`[a]`)', ...TABLE, '| b | string | 5 | ms between two |', '| c | string | x | `x`, `y` |'],
    '[a] b string in ms = 5',
    '[a] c string = x of x|y',
  ],
  [
    'a column that mixes default and meaning has a default where nothing else is in the cell',
    [
      '### A (`[a]`)',
      '| Key | Type | Default / meaning |',
      '|---|---|---|',
      '| b | int | 15 |',
      '| c | int | 15 of them |',
    ],
    '[a] b int = 15',
    '[a] c int',
  ],
  [
    'a clause of prose is a key with what follows it',
    ['`[a]` (remark): `b` string required (https://h:1/); `c` 200s; `d` (`x` or `y`, default `x`); `e` int default 3.'],
    '[a] b string = https://h:1/ required',
    '[a] c = 200s',
    '[a] d = x of x|y',
    '[a] e int = 3',
  ],
  [
    'choices may follow their key',
    ['`[[a]]` `b` string, none, `x` or `y`; `c` `x` (default) or `y`.'],
    '[[a]] b string = none of x|y',
    '[[a]] c = x of x|y',
  ],
  [
    'a remark in words at the end applies to all names before it, a remark after a number or a name does not',
    ['`[a]`: `b`, `c` (strings); `d.e`, `.f` 5, `.g`; `h` and `i` arrays, required; `j.k/l` (super admin default).'],
    '[a] b string',
    '[a] c string',
    '[a] d.e',
    '[a] d.f = 5',
    '[a] d.g',
    '[a] h array required',
    '[a] i array required',
    '[a] j.k as super admin credentials',
    '[a] j.l as super admin credentials',
  ],
  [
    'units and lists in prose',
    [
      '- `[a]` `b` integer seconds (default 0) between; `c` 35 (seconds); `d` (default x, y, z); `e` float (default 2.0).',
    ],
    '[a] b integer in s = 0',
    '[a] c in s = 35',
    '[a] d = x, y, z',
    '[a] e float = 2.0',
  ],
  [
    'sections named together share their keys, and a free name is kept',
    [
      '- Custom: `[[a]]`, `[[b.c]]`, each with `d` string required. `[e.<name>]`: `f.<name>` custom; `g` key-value pairs.',
    ],
    '[[a]] d string required',
    '[[b.c]] d string required',
    '[e.<name>] f.<name>',
    '[e.<name>] g.<name> key-value pairs',
  ],
  [
    'keys of examples need no backticks',
    ['### A (`[a]`)', ...TABLE, '| b.c.d | integer | 1 | |', '', 'Example-only keys: `b.c...`, `e`, f.g (-1), h.'],
    '[a] b.c.d integer = 1',
    '[a] e example',
    '[a] f.g = -1 example',
    '[a] h example',
  ],
  [
    'a section of the heading may have some of the keys only',
    ['### A (`[a.first]` and `[a.second]`)', ...TABLE, '| b, c | string | x | |', '', 'The second section has b only.'],
    '[a.first] b string = x',
    '[a.second] b string = x',
    '[a.first] c string = x',
  ],
]

for (const [clause, lines, ...keys] of READ) {
  test(clause, () => assert.deepEqual(extractKeys(specOf(...lines), []).map(shortOf), keys))
}

const REFUSED: readonly (readonly [clause: string, lines: readonly string[], line: number, message: string])[] = [
  [
    'a token that follows nothing',
    ['`[a]` `b` and then `c`.'],
    3,
    '`c` after "and then" is neither a key nor a choice of one',
  ],
  ['a token in a remark', ['`[a]` `b` (see `c`).'], 3, '"c" is neither a key nor known to be none'],
  [
    'a word that is spelt like a key',
    ['', '`[a]` `b`; other_key is about it.'],
    4,
    '"other_key" is neither a key nor known to be none',
  ],
  [
    'a token in a meaning',
    ['### A (`[a]`)', ...TABLE, '| b | string | x | as `c` says |'],
    6,
    '"c" is neither a key nor known to be none',
  ],
  [
    'a token that is a key elsewhere only',
    ['### A (`[a]`)', '`b` string.', '### C (`[c]`)', '`d` string (see `b`).'],
    6,
    '"b" is neither a key nor known to be none',
  ],
  ['a key in no section', ['`b` string.'], 3, '`b` stands in no section'],
  ['a row in no section', ['### A', ...TABLE, '| b | string | x | |'], 6, '"b" stands in no section'],
  ['a sentence without keys', ['Keys beyond those: ask.'], 3, 'no key was found in "Keys beyond those: ask"'],
  ['a section without keys', ['### A (`[a]`)', '`[b]` `c`.'], 3, '[a] has no key'],
  ['a name that is none', ['`[a]` `b c`.'], 3, '"b c" is no name of a key'],
  [
    'a column nobody knows',
    ['### A (`[a]`)', '| Key | Since |', '|---|---|', '| b | 4 |'],
    6,
    'the column "Since" is not known',
  ],
  ['a key that comes twice', ['`[a]` `b`.', '', '`[a]` `b` string.'], 5, 'a.b is documented on line 3 too'],
  ['a name cut off without a key', ['`[a]` `b`.', '', '`[a]` Example-only keys: `c...`.'], 5, 'no key begins with c'],
]

for (const [clause, lines, line, message] of REFUSED) {
  test(`${clause} is refused with its line`, () => {
    assert.throws(
      () => extractKeys(specOf(...lines), []),
      error =>
        error instanceof SpecError && assert.deepEqual([error.line, error.message], [line, message]) === undefined,
    )
  })
}

/** The shortest sentence for each adapter. */
const ADAPTED = specOf(
  '### Pass-through (`[transport.passthru_http]`)',
  'Blocking mode: `a`; `[transport.blocking_https]` `b`.',
  '',
  'Proxy profiles: either `proxyProfiles` (string) or an array of tables with `c` array (sections `[[p]]`, `[[q]]`). ' +
    '`targetHosts` accepts `*`.',
  '',
  'Websocket: `[transport.ws]` `d`; wss adds `e`.',
  '### Others',
  '- Sections: `[message_builders]`. Builder keys: f. Formatter keys: the same plus g and h.',
  'Synapse handlers: `z` array of names; `[[y]]` `name` string.',
  '- `[x]` `enable`. Checkers: `i` (`enable` true, properties `j` 80); `k` (`enable` true, properties `l`, `m`); ' +
    'custom `[n]` `o`.',
  '- Grant types (`[g.<name>]`): each has `enable` boolean; `s` also have `v`. Names and enable defaults: r true, ' +
    's false (as listed). `r.t` false.',
)

const ADAPTED_KEYS = [
  '[transport.blocking_http] a',
  '[transport.blocking_https] a',
  '[transport.blocking_https] b',
  '[transport.passthru_http] sender.proxyProfiles',
  '[[p]] c',
  '[[q]] c',
  '[transport.ws] d',
  '[transport.wss] e',
  '[message_builders] f',
  '[blocking.message_builders] f',
  ...['f', 'g', 'h'].flatMap(key => [`[message_formatters] ${key}`, `[blocking.message_formatters] ${key}`]),
  ...['[] z', '[[y]] name', '[x] enable', '[x] i.enable', '[x] i.properties.j'],
  ...['[x] k.enable', '[x] k.properties.l', '[x] k.properties.m', '[[n]] o'],
  ...['[g.<name>] enable', '[g.r] enable', '[g.s] enable', '[g.s] v', '[g.r] t'],
]

const SCRIPT = fileURLToPath(new URL('../../scripts/spec-keys.ts', import.meta.url))

function run(...given: readonly string[]) {
  return spawnSync(process.execPath, [SCRIPT, ...given], { encoding: 'utf8', timeout: 120_000 })
}

test('the script lists keys with their lines, including those from adapters', t => {
  const home = temporaryHome(t, { 'spec.md': ADAPTED })
  const { stdout, stderr, status } = run(join(home, 'spec.md'))
  assert.deepEqual([stderr, status], ['', 0])
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map(row => row.split('\t'))
  assert.deepEqual(
    rows.map(([, key]) => key),
    ADAPTED_KEYS,
  )
  assert.deepEqual(rows[0], ['4', '[transport.blocking_http] a', ''])
  const data: readonly SpecKey[] = JSON.parse(run(join(home, 'spec.md'), '--json').stdout)
  assert.equal(data.length, rows.length)
  assert.deepEqual(data[0], { section: 'transport.blocking_http', key: 'a', line: 4 })
})

test('the script names file and line of a text that it does not understand, and exits with 1', t => {
  const home = temporaryHome(t, { 'spec.md': ADAPTED.replace('`[transport.ws]` `d`', '`[transport.ws]` `d` see `x`') })
  const { stdout, stderr, status } = run(join(home, 'spec.md'))
  const message = `${join(home, 'spec.md')}:8: \`x\` after "see" is neither a key nor a choice of one\n`
  assert.deepEqual([stdout, stderr, status], ['', message, 1])
})

test('an unreadable file gives one line', t => {
  const missing = join(temporaryHome(t, {}), 'spec.md')
  const { stdout, stderr, status } = run(missing)
  assert.deepEqual([stdout, status], ['', 1])
  assert.match(stderr, /^ENOENT: .*spec\.md'\n$/)
})

test('an adapter that matches nothing is an error', t => {
  const home = temporaryHome(t, { 'spec.md': ADAPTED.replace('wss adds', 'wss has') })
  const { stderr, status } = run(join(home, 'spec.md'))
  assert.match(
    stderr,
    /^.*spec\.md:1: nothing matches \/; wss adds \/, needed because a section is named by its last word\n$/,
  )
  assert.equal(status, 1)
})

for (const given of [[], ['a.md', 'b.md'], ['a.md', '--what']]) {
  test(`arguments ${JSON.stringify(given)} print the usage and exit with 2`, () => {
    const { stderr, status } = run(...given)
    assert.equal(stderr, 'usage: node scripts/spec-keys.ts SPEC.md [--json | --write]\n')
    assert.equal(status, 2)
  })
}
