import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDocument } from '../../src/config/document.ts'

interface Case {
  readonly name: string
  readonly source: string
  /** [path, value, line]. */
  readonly entries: readonly (readonly [path: string, value: unknown, line: number])[]
}

const CASES: readonly Case[] = [
  { name: 'nothing', source: '# only a comment\n\n', entries: [] },
  { name: 'a byte order mark', source: '\ufeffa = 1', entries: [['a', 1, 1]] },
  {
    name: 'nested tables',
    source: '[a]\nb.c = 1\n[a.d]\ne = 2',
    entries: [
      ['a.b.c', 1, 2],
      ['a.d.e', 2, 4],
    ],
  },
  {
    name: 'a quoted key with dots',
    source: '[a]\n"b.c" = 1\n\'d.e\' = 2',
    entries: [
      ['a.b.c', 1, 2],
      ['a.d.e', 2, 3],
    ],
  },
  { name: 'blanks around dots', source: '[ a . "b" ]\nc . d = 1', entries: [['a.b.c.d', 1, 2]] },
  { name: 'escapes in a key', source: '"a\\u002eb\\"c" = 1', entries: [['a.b"c', 1, 1]] },
  {
    name: 'an inline table',
    source: 'a = { b = 1, "c.d" = { e = "}" } } # }\nf = 2',
    entries: [
      ['a.b', 1, 1],
      ['a.c.d.e', '}', 1],
      ['f', 2, 2],
    ],
  },
  {
    name: 'an inline table over several lines',
    source: 'a = {\n  b = 1, # one\n  c = 2,\n}',
    entries: [
      ['a.b', 1, 2],
      ['a.c', 2, 3],
    ],
  },
  {
    name: 'an array over several lines',
    source: 'a = [\n "]", # ]\n [1, 2],\n]\nb = 2',
    entries: [
      ['a', [']', [1, 2]], 1],
      ['b', 2, 5],
    ],
  },
  {
    name: 'an array of inline tables',
    source: 'a = [{ b = 1 }, { b = "=" }]\nc = 1',
    entries: [
      ['a', [{ b: 1 }, { b: '=' }], 1],
      ['c', 1, 2],
    ],
  },
  {
    name: 'texts over several lines',
    source: 'a = """\nx = 1\n[b]\\"""""\nc = \'\'\'\ny = 2\'\'\'\nd = 1',
    entries: [
      ['a', 'x = 1\n[b]""', 1],
      ['c', 'y = 2', 4],
      ['d', 1, 6],
    ],
  },
  {
    name: 'a hash in a text',
    source: 'a = "# no comment" # one\nb = \'"\'\nc = 1',
    entries: [
      ['a', '# no comment', 1],
      ['b', '"', 2],
      ['c', 1, 3],
    ],
  },
  {
    name: 'carriage returns',
    source: '[a]\r\nb = 1\r\n\r\nc = "x"\r\n',
    entries: [
      ['a.b', 1, 2],
      ['a.c', 'x', 4],
    ],
  },
  {
    name: 'repeated tables',
    source: '[[a]]\nb = 1\n[a.c]\nd = 2\n[[a]]\nb = 3',
    entries: [
      ['a[0].b', 1, 2],
      ['a[0].c.d', 2, 4],
      ['a[1].b', 3, 6],
    ],
  },
  {
    name: 'repeated tables within each other',
    source: '[[a]]\n[[a.b]]\nc = 1\n[[a]]\n[[a.b]]\nc = 2\n[[a.b]]\nc = 3',
    entries: [
      ['a[0].b[0].c', 1, 3],
      ['a[1].b[0].c', 2, 6],
      ['a[1].b[1].c', 3, 8],
    ],
  },
  {
    name: 'an empty inline table',
    source: 'a = {}\nb = 1',
    entries: [
      ['a', {}, 1],
      ['b', 1, 2],
    ],
  },
  {
    name: 'numbers in their spellings',
    source: 'a = 1_000\nb = 0x10\nc = 1e3 # x\nd = -1.5',
    entries: [
      ['a', 1000, 1],
      ['b', 16, 2],
      ['c', 1000, 3],
      ['d', -1.5, 4],
    ],
  },
  {
    name: 'a key named like a part of every object',
    source: '__proto__ = 1\nconstructor.name = 2',
    entries: [
      ['__proto__', 1, 1],
      ['constructor.name', 2, 2],
    ],
  },
]

for (const { name, source, entries } of CASES) {
  test(`keys are found with their lines: ${name}`, () => {
    const read = readDocument('f', source)
    assert.deepEqual(read.errors, [])
    const found = read.entries.map(({ path, value, line }) => [path, structuredClone(value), line])
    assert.equal(JSON.stringify(found), JSON.stringify(entries))
  })
}

test('all spellings name the same key, and setting it twice is an error that names both lines', () => {
  const { errors } = readDocument('f', '[a]\n"b.c" = 1\n[a.b]\nc = 2')
  assert.deepEqual(errors, [
    {
      where: 'f:4',
      key: 'a.b.c',
      given: '',
      expected: 'set twice',
      hint: 'it is already set on line 2; quoted and nested spellings name the same key',
    },
  ])
})

const ROWS = 'transport.http.proxy_profile'

const HEADERS: readonly (readonly [source: string, rows: readonly string[], tables: readonly string[]])[] = [
  ['[a]\n[a.b]\nc = 1\n["d.e"]', [], ['a:1', 'a.b:2', 'd.e:4']],
  ['[[a]]\n[a.b]\n[[a]]\n[[a.c]]\n[a.c.d]', ['a[0]:1', 'a[1]:3', 'a[1].c[0]:4'], ['a[0].b:2', 'a[1].c[0].d:5']],
  // Inline tables in an array are rows of a repeated table, and values elsewhere.
  ['x = [{ a = 1 }, { a = 2 }]', [], []],
  [
    `${ROWS} = [{ proxy_host = "a" },\n { proxy_host = "b" }, # [{\n {}]`,
    [`${ROWS}[0]:1`, `${ROWS}[1]:2`, `${ROWS}[2]:3`],
    [],
  ],
  ['[transport]\nhttp = { proxy_profile = [\n{}\n] }', [`${ROWS}[0]:3`], ['transport:1']],
  [`${ROWS} = []`, [], []],
  [`${ROWS} = [{}, 5]`, [], []],
]

for (const [source, rows, tables] of HEADERS) {
  test(`headers and inline tables open tables and rows: ${JSON.stringify(source)}`, () => {
    const read = readDocument('f', source)
    const placed = (listed: typeof read.rows): readonly string[] => listed.map(({ path, line }) => `${path}:${line}`)
    assert.deepEqual(placed(read.rows), rows)
    assert.deepEqual(placed(read.tables), tables)
  })
}

test('keys of an inline row have the line on which they are written', () => {
  const { entries } = readDocument(
    'f',
    `${ROWS} = [\n  { proxy_host = "a",\n    proxy_port = 1 },\n  { proxy_host = "b" },\n]\nz = 1`,
  )
  assert.deepEqual(
    entries.map(({ path, value, line }) => [path.replace(ROWS, 'R'), value, line]),
    [
      ['R[0].proxy_host', 'a', 2],
      ['R[0].proxy_port', 1, 3],
      ['R[1].proxy_host', 'b', 4],
      ['z', 1, 6],
    ],
  )
})

const BROKEN: readonly (readonly [source: string, where: string])[] = [
  ['a = \n', 'f:1:5'],
  ['[a]\nb = "x\nc = 1', 'f:2:7'],
  ['a = 1\na = 2', 'f:2:1'],
  ['[server\n', 'f:1:8'],
  ['a = yes', 'f:1:5'],
]

for (const [source, where] of BROKEN) {
  test(`a syntax error is the only error, with line and column: ${JSON.stringify(source)}`, () => {
    const { entries, errors } = readDocument('f', source)
    assert.deepEqual(entries, [])
    assert.deepEqual(
      errors.map(diagnostic => diagnostic.where),
      [where],
    )
    assert.match(errors[0]!.expected, /^not valid TOML: [a-z]/)
  })
}

/** The key or table of a syntax error, and the line that it conflicts with. */
const NAMED: readonly (readonly [source: string, name: string, reason: RegExp])[] = [
  ['[a.b]\nc = 1\n[ a . "b" ]', '[a.b]', /redefine .* of line 1$/],
  ['[[a.b]]\nc = 1\n[a.b]', '[a.b]', /redefine .* of line 1$/],
  ['[a.b.x]\nc = 1\n[[a.b]]', '[[a.b]]', /redefine .* of line 1$/],
  ['a = 1\n[a.b]', '[a.b]', /redefine .* of line 1$/],
  ['[t]\na = 1\nb = 2\n"a" = 3', 't.a', /redefine .* of line 2$/],
  ['[[t]]\n[t.a]\n[[t]]\n[t.a]\n[t.a] # [x]', '[t.a]', /redefine .* of line 4$/],
  ['[t]\npassword = hunter2-1', 't.password', /^[a-z]/],
  ['[t]\n"pass.word" = "hunter2', 't.pass.word', /^[a-z]/],
  ["\ufeff[[t]]\na = 1\n[[t]]\n'b' = yes", 't[1].b', /^[a-z]/],
  ['"\\UFFFFFFFF" = 1', '', /^[a-z]/],
  ['[server', '', /^[a-z]/],
  ['[t]\nhunter2', '', /^[a-z]/],
  // Text within a value is never taken for a name.
  ['[t]\na = """\nhunter2 = x\n""" x', '', /^[a-z]/],
  ['[t]\na = [\n"hunter2" = x\n]', '', /^[a-z]/],
  ['[t]\na = """\n[hunter2]', 't.a', /^[a-z]/],
]

for (const [source, name, reason] of NAMED) {
  test(`a syntax error names its table or key and no value: ${JSON.stringify(source)}`, () => {
    const diagnostic = readDocument('f', source).errors[0]!
    const beginning = `not valid TOML: ${name === '' ? '' : `${name}: `}`
    assert.ok(diagnostic.expected.startsWith(beginning), diagnostic.expected)
    assert.match(diagnostic.expected.slice(beginning.length), reason)
    assert.equal(diagnostic.key, '')
    assert.doesNotMatch(JSON.stringify(diagnostic), /hunter2/)
  })
}
