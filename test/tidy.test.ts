/**
 * What is kept true of the code itself by a test and not by memory. The rules are the list below; how they are checked
 * stands behind it. A rule that is in the way is changed here, in the open, with its reason.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { functionsOf, lineAt } from './tidy/scan.ts'
import { readRootFile, readTree, type SourceFile } from './tidy/source-tree.ts'

const LINES_MAX = 400
const FUNCTION_LINES_MAX = 70
const COLUMNS_MAX = 120

/** Tables: their rows are data, and may be as many or as wide as they are. */
const DATA_TABLES: readonly string[] = []
/** A line of a test that is one literal and nothing else is a row too: an expected text is found only when whole. */
const LITERAL = /^\s*(?:'\s*'|"\s*"|\/\s*\/[a-z]*),?$/

const FOUNDATION = ['structure', 'socket', 'http1', 'errors', 'config']
const BELOW_ENGINES = [...FOUNDATION, 'protocol', 'exchange']
const ENGINES = ['identity', 'throttle', 'events', 'store', 'registry', 'observe']
const BELOW_ROOMS = [...BELOW_ENGINES, ...ENGINES]
/** Folder of src -> what it may import besides itself. The hallway may all. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  structure: [],
  socket: ['structure'],
  http1: ['structure'],
  errors: ['structure'],
  config: ['structure'],
  protocol: FOUNDATION,
  exchange: [...FOUNDATION, 'protocol'],
  identity: [...BELOW_ENGINES, 'observe'],
  throttle: [...BELOW_ENGINES, 'observe'],
  events: [...BELOW_ENGINES, 'observe'],
  // The key manager's memory: the authority's alone.
  registry: [...BELOW_ENGINES, 'observe', 'identity'],
  store: BELOW_ENGINES,
  // Makes the plain plans that sockets are secured with; the primary's alone, and of sockets it has types only.
  tls: ['structure', 'socket', 'config'],
  observe: BELOW_ENGINES,
  source: BELOW_ROOMS,
  route: BELOW_ROOMS,
  handlers: BELOW_ROOMS,
  mediation: BELOW_ROOMS,
  target: BELOW_ROOMS,
  fault: BELOW_ROOMS,
  keymanager: BELOW_ROOMS,
  remote: BELOW_ROOMS,
  management: BELOW_ROOMS,
}
const HALLWAY = 'hallway'
/** Its folders: what runs in each reactor, in the primary and in the authority's thread, and the commands. */
const HALLWAYS = ['reactor', 'primary', 'authority', 'cli']
/** None of the first three knows another: what they share stands in src itself. */
const APART: readonly (readonly [folder: string, other: string])[] = [
  ['src/reactor/', 'src/primary/'],
  ['src/primary/', 'src/reactor/'],
  ['src/reactor/', 'src/cli/'],
  ['src/primary/', 'src/cli/'],
  ['src/authority/', 'src/reactor/'],
  ['src/authority/', 'src/primary/'],
  ['src/authority/', 'src/cli/'],
  ['src/reactor/', 'src/authority/'],
  ['src/primary/', 'src/authority/'],
]

/** Module -> folders and files of src that may import it. Types are free: they are gone at run time. */
const MODULES: readonly (readonly [RegExp, readonly string[]])[] = [
  // The port probe, and the health port that does without Node's HTTP server (D9, D18).
  // And whether OpenSSL takes a key, which is asked where a refusal can still be reported.
  // Both ends of the control socket: the command line has no other way in, and no traffic passes there.
  [
    /^node:(net|tls)$/,
    [
      ...['socket', 'src/primary/ports.ts', 'src/primary/health-listener.ts', 'src/tls/openssl.ts'],
      ...['src/primary/control-socket.ts', 'src/cli/ask.ts'],
    ],
  ],
  [/^node:(http|https|http2)$/, [HALLWAY]],
  [/^node:fs(\/|$)/, ['config', 'observe', 'store', 'registry', 'tls', HALLWAY]],
  // And the line of a reactor, which takes in news between two steps of a request.
  [/^node:(worker_threads|cluster|child_process)$/, [HALLWAY, 'src/identity/authority-line.ts']],
  [/^pino$/, ['src/observe/log.ts']],
  [/^(smol-toml|js-yaml|@seriousme\/openapi-schema-validator)$/, ['config']],
  [/^node-forge\//, ['tls']],
  [/^@xmldom\//, ['config', 'src/mediation/late-libraries.ts']],
  [/^xpath$/, ['src/mediation/expression-parsers.ts', 'src/mediation/late-libraries.ts']],
  [/^json-p3$/, ['src/mediation/late-libraries.ts']],
  // Clients choose what patterns of scopes are matched against, too.
  [/^re2js$/, ['src/mediation/late-libraries.ts', 'src/keymanager/scopes.ts']],
  // Its client asks issuers and back ends' token endpoints; reactors have its parser alone.
  [/^undici/, ['src/http1/llhttp.ts', 'src/remote/http-client.ts']],
  [/^(kysely|pg|mysql2)/, ['registry']],
  [/^node:sqlite$/, ['registry']],
  [/^jose$/, ['keymanager', 'remote']],
  [/^(hono|@hono)/, ['keymanager', 'management', HALLWAY]],
]
/** A reactor starts fast and stays small: these never reach its import graph. */
const NOT_IN_A_REACTOR = [
  'pino',
  'smol-toml',
  'js-yaml',
  '@seriousme/openapi-schema-validator',
  'node-forge',
  '@xmldom/xmldom',
  'xpath',
  'json-p3',
  're2js',
  'undici',
  'kysely',
  'pg',
  'mysql2',
  'node:sqlite',
  'jose',
  'hono',
  '@hono/node-server',
]
/** Loads what it names when it is first asked for it, and not before. */
const LOADS_ON_FIRST_USE = ['src/mediation/late-libraries.ts']
const REACTOR_ENTRY = 'src/thread-entry.js'

/** Words that gather what has no place. */
const BANNED_NAMES = ['utils', 'util', 'helpers', 'helper', 'common', 'misc', 'types', 'index']

/** State beside the machine: boolean fields of connections, each with its reason to exist. */
const CONNECTION_BOOLEANS: Readonly<Record<string, readonly string[]>> = {}

/** Patterns over code without comments and strings, in every file. */
const BANNED_CODE: readonly (readonly [string, RegExp])[] = [
  ['export *', /\bexport\s*\*/g],
  ['default export', /\bexport\s+default\b|\bas\s+default\b/g],
  ['enum', /\benum\s+\w+\s*\{/g],
  ['any', /[\w)\]]\??:\s*any\b|<any\b|\bany\[\]|\bas\s+any\b|(?<!\|)\|\s*any\b|^\s*(?:export\s+)?type\s.*=\s*any\b/gm],
  ['a test that is skipped or runs alone', /\b(?:test|it|describe)\.(?:skip|todo|only)\b/g],
]
/** Patterns over the whole text, comments included; in pieces, so that this file is clean. */
const BANNED_TEXT: readonly (readonly [string, RegExp])[] = [
  [
    'stray note to oneself',
    new RegExp(`\\b(?:${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`, 'g'),
  ],
  ['silenced compiler', new RegExp('@ts-' + '(?:ignore|nocheck|expect-error)', 'g')],
]
/** Same bodies of functions are one function, from this many lines on. */
const SAME_BODY_LINES = 6

const RULES: readonly (readonly [string, () => string[]])[] = [
  ['folders import only from the layers below them', layers],
  ['modules of Node and packages are used where they belong', modules],
  // Types that name each other are free: there is no order in which they would have to be loaded.
  ['no import goes in a circle', cycles],
  ['a reactor loads a small graph', reactorGraph],
  ['llhttp is known to one file', llhttp],
  ['every export is used by another file', deadExports],
  ['every file is used', deadFiles],
  [`no file is longer than ${LINES_MAX} lines`, longFiles],
  [`no function is longer than ${FUNCTION_LINES_MAX} lines`, longFunctions],
  [`no line is wider than ${COLUMNS_MAX} columns`, wideLines],
  ['no two functions have the same body', sameBodies],
  ['no file or folder has a name that says nothing', bannedNames],
  ['nothing banned is written', bannedText],
  ['connections keep their state in the machine', connectionBooleans],
  ['every metric is counted somewhere', countedMetrics],
]

const TREE = readTree()
const FILES = [...TREE.values()]
const SOURCES = FILES.filter(file => file.path.startsWith('src/'))

for (const [rule, violations] of RULES) {
  test(rule, () => assert.deepEqual(violations(), []))
}

/** Folder of src that a file belongs to; the hallway for its folders and the files of src itself. */
function roomOf(path: string): string {
  const [, folder, ...rest] = path.split('/')
  return rest.length === 0 || HALLWAYS.includes(folder!) ? HALLWAY : folder!
}

function layers(): string[] {
  return SOURCES.flatMap(({ path, imports }) => {
    const room = roomOf(path)
    if (room === HALLWAY) {
      const others = APART.filter(([folder]) => path.startsWith(folder)).map(([, other]) => other)
      return imports
        .filter(
          ({ from, isOurs }) => isOurs && (!from.startsWith('src/') || others.some(other => from.startsWith(other))),
        )
        .map(({ from }) => `${path} imports ${from}`)
    }
    const allowed = LAYERS[room]
    if (allowed === undefined) return [`${path}: the folder ${room} has no layer`]
    return imports
      .filter(({ from, isOurs }) => isOurs && !(from.startsWith('src/') && [room, ...allowed].includes(roomOf(from))))
      .map(({ from }) => `${path} imports ${from}`)
  })
}

function modules(): string[] {
  return SOURCES.flatMap(({ path, imports }) =>
    imports
      .filter(({ from, isOurs, isTypeOnly }) => {
        const row = isOurs || isTypeOnly ? undefined : MODULES.find(([module]) => module.test(from))
        return row !== undefined && !row[1].includes(path) && !row[1].includes(roomOf(path))
      })
      .map(({ from }) => `${path} imports ${from}`),
  )
}

function cycles(): string[] {
  const found: string[] = []
  const done = new Set<string>()
  const path: string[] = []
  const visit = (name: string) => {
    const at = path.indexOf(name)
    if (at !== -1) found.push([...path.slice(at), name].join(' -> '))
    if (at !== -1 || done.has(name)) return
    path.push(name)
    for (const { from, isOurs, isTypeOnly } of TREE.get(name)?.imports ?? []) if (isOurs && !isTypeOnly) visit(from)
    path.pop()
    done.add(name)
  }
  for (const { path: name } of FILES) visit(name)
  return found
}

function reactorGraph(): string[] {
  const seen = new Set<string>()
  const found: string[] = []
  const visit = (name: string) => {
    if (seen.has(name)) return
    seen.add(name)
    for (const { from, isOurs, isTypeOnly } of TREE.get(name)?.imports ?? []) {
      if (isTypeOnly) continue
      if (isOurs) visit(from)
      else if (NOT_IN_A_REACTOR.includes(from) && !LOADS_ON_FIRST_USE.includes(name))
        found.push(`${name}, loaded by a reactor, imports ${from}`)
    }
  }
  visit(REACTOR_ENTRY)
  assert.ok(seen.has('src/reactor/reactor.ts'), 'the entry of a reactor was not found')
  return found
}

function llhttp(): string[] {
  const owners = SOURCES.filter(({ uncommented }) => /'undici\/lib\/llhttp/.test(uncommented)).map(({ path }) => path)
  return owners.length === 1 ? [] : [`expected one file, found: ${owners.join(', ')}`]
}

function deadExports(): string[] {
  const used = new Set<string>()
  for (const { imports } of FILES)
    for (const { from, names } of imports) for (const name of names) used.add(`${from}#${name}`)
  return FILES.filter(({ path }) => !used.has(`${path}#*`)).flatMap(({ path, exports }) =>
    exports.filter(name => !used.has(`${path}#${name}`)).map(name => `${path}: ${name}`),
  )
}

/** Used: imported, started as a thread or a process, named where commands are documented, or run by itself. */
function deadFiles(): string[] {
  const imported = new Set(FILES.flatMap(({ imports }) => imports.map(({ from }) => from)))
  const documented = ['package.json', 'README.md', 'bench/README.md'].map(readRootFile).join()
  return FILES.map(({ path }) => path)
    .filter(
      path => !/\.(?:test|d)\.ts$|^bench\/micro\//.test(path) && !documented.includes(path) && !imported.has(path),
    )
    .filter(path => !FILES.some(({ starts }) => starts(path)))
}

function longFiles(): string[] {
  return FILES.filter(({ path }) => !DATA_TABLES.includes(path)).flatMap(({ path, text }) => {
    const lines = text.split('\n').length - 1
    return lines > LINES_MAX ? [`${path}: ${lines} lines`] : []
  })
}

function longFunctions(): string[] {
  return FILES.flatMap(file =>
    functionsOf(file)
      .filter(({ lines, name }) => lines > FUNCTION_LINES_MAX && name !== 'describe')
      .map(({ line, lines, name }) => `${file.path}:${line} ${name}: ${lines} lines`),
  )
}

function wideLines(): string[] {
  return FILES.filter(({ path }) => !DATA_TABLES.includes(path)).flatMap(({ path, text, code }) => {
    const codeLines = code.split('\n')
    return text
      .split('\n')
      .flatMap((line, at) =>
        line.length > COLUMNS_MAX && !(path.startsWith('test/') && LITERAL.test(codeLines[at]!))
          ? [`${path}:${at + 1}: ${line.length} columns`]
          : [],
      )
  })
}

function sameBodies(): string[] {
  const places = new Map<string, string[]>()
  for (const file of SOURCES) {
    for (const { body, line, lines } of functionsOf(file)) {
      if (lines < SAME_BODY_LINES) continue
      const key = body.replace(/\s+/g, ' ')
      places.set(key, [...(places.get(key) ?? []), `${file.path}:${line}`])
    }
  }
  return [...places.values()].filter(same => same.length > 1).map(same => same.join(' = '))
}

function bannedNames(): string[] {
  return FILES.map(({ path }) => path).filter(path =>
    path.split('/').some(part => BANNED_NAMES.includes(part.replace(/\..*$/, ''))),
  )
}

function bannedText(): string[] {
  const matches = (text: string, file: SourceFile, [what, pattern]: readonly [string, RegExp]) =>
    [...text.matchAll(pattern)].map(match => `${file.path}:${lineAt(text, match.index)}: ${what}`)
  return FILES.flatMap(file => [
    ...BANNED_CODE.flatMap(row => matches(file.code, file, row)),
    ...BANNED_TEXT.flatMap(row => matches(file.text, file, row)),
  ])
}

function connectionBooleans(): string[] {
  const field = /^ {2}(?:(?:static|readonly|override|private|public) )*(#?\w+)(?:\??: boolean\b| = (?:true|false)\b)/gm
  return SOURCES.filter(({ path }) => path.endsWith('-connection.ts')).flatMap(({ path, code }) =>
    [...code.matchAll(field)]
      .filter(match => !CONNECTION_BOOLEANS[path]?.includes(match[1]!))
      .map(match => `${path}:${lineAt(code, match.index)}: ${match[1]}`),
  )
}

function countedMetrics(): string[] {
  const owner = TREE.get('src/observe/metrics.ts')!
  const names = [...owner.uncommented.matchAll(/^ {2}(\w+): \['(?:counter|gauge)'/gm)].map(match => match[1]!)
  assert.ok(names.length > 10, 'the table of metrics was not found')
  const others = SOURCES.filter(file => file !== owner).map(({ code }) => code)
  return names.filter(name => !others.some(code => new RegExp(`\\bMETRIC\\.${name}\\b`).test(code)))
}
