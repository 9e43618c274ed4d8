/**
 * Rules for the source tree: imports, exports, sizes, names, state and documents. RULES lists them; the functions below
 * check them. Change a rule here if it is in the way, with the reason.
 */
import assert from 'node:assert/strict'
import { dirname, matchesGlob, normalize } from 'node:path'
import { test } from 'node:test'
import { functionsOf, lineAt } from './tidy/scan.ts'
import { readRootFile, readTree, type SourceFile } from './tidy/source-tree.ts'

const LINES_MAX = 600
const FUNCTION_LINES_MAX = 70
const COLUMNS_MAX = 120
const README_LINES_MAX = 60
const ARCHITECTURE_BYTES_MAX = 20_480

/** Files that contain only data; their lines may be of any number and width. */
const DATA_TABLES: readonly string[] = ['src/mounted/healthcare/definitions.ts']
/**
 * A line of a test with nothing but a literal, or within one, may be of any width, because expected texts are easier to
 * find uncut, and grids have a column for each event.
 */
const LITERAL = /^\s*(?:'\s*'|"\s*"|\/\s*\/[a-z]*),?$/

/** Room of src -> rooms that it may import besides itself and `runtime`, from the table of rooms in ARCHITECTURE.md. */
const ROOMS = readRooms(readRootFile('ARCHITECTURE.md'))
/** Rooms that start threads, listen for operators, or implement commands. */
const OUTER_ROOMS = ['reactor', 'primary', 'control', 'cli']

/** Module -> rooms and files of src that may import it. Types are allowed everywhere: they vanish at run time. */
const MODULES: readonly (readonly [RegExp, readonly string[]])[] = [
  // Besides sockets: the port probe, the health port (which needs no HTTP server of Node; D9, D18), the check whether
  // OpenSSL accepts a key, both ends of the control socket, the checks of the platform's health service, and the
  // management listener, which needs no HTTP server of Node before its first connection, the reports of gateways, the
  // connections to providers and mail servers, and IP addresses as text.
  [
    /^node:(net|tls)$/,
    [
      ...['socket', 'src/plan/ports.ts', 'src/primary/health-listener.ts', 'src/tls/tls-plan-context.ts'],
      ...['src/primary/control-socket.ts', 'src/cli/control-client.ts', 'src/primary/health-checks.ts'],
      ...['src/control/management-listener.ts', 'src/events/report-client.ts', 'src/events/report-server.ts'],
      ...['src/observe/access-log-syslog.ts', 'src/runtime/ip-address.ts', 'tune'],
      ...['src/delivery/address-guard.ts', 'src/delivery/http-sender.ts', 'src/delivery/trust.ts'],
    ],
  ],
  [/^node:(http|https|http2)$/, OUTER_ROOMS],
  [
    /^node:fs(\/|$)/,
    [
      ...['config', 'apis', 'plan', 'mediation', 'observe', 'runtime', 'control/registry', 'control/oauth', 'database'],
      'tls',
      'src/proxy/mediated/body-store.ts',
      ...[...OUTER_ROOMS, 'src/launch.js', 'src/throttle/counter-file.ts', 'src/tune/other-programs.ts'],
      ...['src/mounted/notifications/provider-file.ts', 'src/delivery/lease.ts'],
    ],
  ],
  // Besides threads: the channel of a reactor, which receives updates between steps of a request, and the plan codec.
  [
    /^node:(worker_threads|cluster|child_process)$/,
    [
      ...[...OUTER_ROOMS, 'tune', 'worker', 'src/auth/control-channel.ts', 'src/plan/plan-codec.ts'],
      ...['src/runtime/isolated-threads.ts', 'src/runtime/process-memory.ts', 'src/runtime/refused-threads.ts'],
      ...['src/runtime/heap-room.ts', 'src/runtime/process-name.ts', 'src/runtime/temporary-files.ts'],
    ],
  ],
  [/^pino$/, ['src/observe/log.ts']],
  [/^(smol-toml|js-yaml|@seriousme\/openapi-schema-validator)$/, ['config', 'apis']],
  [/^node-forge\//, ['tls']],
  [/^@xmldom\//, ['config']],
  [/^ajv(-draft-04)?(\/|$)/, ['src/mediation/json-schema.ts', 'src/mediation/openapi/contract-schemas.ts']],
  [/^graphql$/, ['src/mediation/graphql/graphql-library.ts']],
  [
    /^saxes$/,
    [
      ...['src/mediation/formats/xml-reader.ts', 'src/mounted/healthcare/narrative.ts'],
      'src/mounted/notifications/provider-file.ts',
    ],
  ],
  [/^xpath$/, ['src/mediation/expression-syntax.ts', 'src/mediation/lazy-libraries.ts']],
  [/^json-p3$/, ['src/mediation/lazy-libraries.ts']],
  [/^re2js$/, ['src/runtime/pattern.ts']],
  [/^piscina$/, ['src/reactor/worker-threads.ts', 'worker']],
  [/^@redis\//, ['src/throttle/redis-connection.ts']],
  [/^amqplib$/, ['events']],
  // Its HTTP client calls issuers, token endpoints of backends, and providers; reactors use only its parser.
  [/^undici/, ['src/http1/llhttp.ts', 'src/control/remote/http-client.ts', 'src/delivery/http-sender.ts']],
  [/^nodemailer/, ['src/delivery/smtp-sender.ts']],
  [/^kysely/, ['database', 'delivery', 'control/registry', 'mounted', 'mounted/healthcare', 'mounted/notifications']],
  [/^(pg|mysql2)/, ['database']],
  [/^node:sqlite$/, ['database']],
  [/^jose$/, ['control/oauth', 'control/remote']],
  [/^(hono|@hono)/, ['control/oauth', 'control/admin-api', 'control/dashboard', ...OUTER_ROOMS]],
]
/** Modules that a reactor never loads, so that it starts fast and stays small. */
const NOT_IN_A_REACTOR = [
  'pino',
  'smol-toml',
  'js-yaml',
  '@seriousme/openapi-schema-validator',
  'node-forge',
  '@xmldom/xmldom',
  'ajv',
  'ajv-draft-04',
  'graphql',
  'saxes',
  'xpath',
  'json-p3',
  're2js',
  'undici',
  'nodemailer',
  'kysely',
  'pg',
  'mysql2',
  'node:sqlite',
  'jose',
  'hono',
  '@hono/node-server',
  '@redis/client',
  'amqplib',
  'piscina',
]
/** Files of which each loads many others, and which a reactor loads for the first API that needs them. */
const NOT_AT_THE_START_OF_A_REACTOR = [
  'src/mediation/mediators/list.ts',
  'src/reactor/reactor-mediation.ts',
  'src/reactor/handler-loading.ts',
]
/** Files that load libraries on their first use. */
const LOADS_ON_FIRST_USE = [
  ...[
    'src/mediation/json-schema.ts',
    'src/mediation/openapi/contract-schemas.ts',
    'src/mediation/graphql/graphql-library.ts',
    'src/mediation/lazy-libraries.ts',
    'src/runtime/pattern.ts',
    'src/throttle/redis-connection.ts',
  ],
  'src/reactor/worker-threads.ts',
]
const REACTOR_ENTRY = 'src/reactor/reactor-entry.js'

/** Names that do not say what a file contains. */
const BANNED_NAMES = ['utils', 'util', 'helpers', 'helper', 'common', 'misc', 'types', 'index']

/**
 * Mutable boolean, string and nullable fields of classes that own a machine or a socket, with the reason why a state
 * does not replace them. A field with a type of its own, such as a union of states, is free.
 */
const FIELDS_BESIDE_STATE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'src/observe/exchange-trace.ts': {
    '#exchange': 'what is traced; the machines belong to others',
    '#source': 'a machine of others',
    '#target': 'a machine of others',
    '#last': 'a machine of others',
    '#summary': 'result of the trace',
  },
  'src/proxy/exchange/write-buffer.ts': {
    '#held': 'memory of pending writes',
    '#socket': 'the socket, once connected',
  },
  'src/proxy/source/source-connection.ts': {
    '#tunnel': 'the tunnel of state TUNNEL',
    '#linger': 'made when state CLOSING begins, which few connections reach',
    '#paced': 'made when bytes wait for the first time',
  },
  'src/proxy/target/connector.ts': {
    '#socket': 'the socket of the step',
    '#tunnel': 'the tunnel of the step',
    '#address': 'address of the current try, for the log',
  },
  'src/proxy/target/response-reader.ts': { '#exchange': 'the exchange that is read' },
  'src/proxy/target/target-connection.ts': {
    '#connector': 'the connector of state CONNECTING, to cancel it',
    '#socket': 'the socket, once connected',
    '#exchange': 'the exchange that is served',
    '#endpoint': 'hears of the exchange',
    '#buffer': 'memory of a request that may be sent again',
    '#emptyBuffer': 'empty, for the next request',
    '#writeError': 'cause of the states UNWRITABLE, for the log',
    '#address': 'address of the backend, for the log',
  },
  'src/socket/handle-socket.ts': {
    '#view': 'memory to read into, until connected',
    '#gathered': 'memory of bytes that leave when the turn ends',
    '#isReading': 'libuv cannot be asked; a repeated call costs a system call',
  },
  'src/socket/tls-handle-socket.ts': { tls: 'the handle, once the handshake starts' },
  'src/socket/tls-stream.ts': { tls: 'the stream, once the handshake starts' },
}

/** Patterns over code without comments and strings, in every file. */
const BANNED_CODE: readonly (readonly [string, RegExp])[] = [
  ['export *', /\bexport\s*\*/g],
  ['default export', /\bexport\s+default\b|\bas\s+default\b/g],
  ['enum', /\benum\s+\w+\s*\{/g],
  ['any', /[\w)\]]\??:\s*any\b|<any\b|\bany\[\]|\bas\s+any\b|(?<!\|)\|\s*any\b|^\s*(?:export\s+)?type\s.*=\s*any\b/gm],
  ['a test that is skipped or runs alone', /\b(?:test|it|describe)\.(?:skip|todo|only)\b/g],
]
/** Patterns over the whole text, comments included; in pieces, so that this file does not match. */
const BANNED_TEXT: readonly (readonly [string, RegExp])[] = [
  [
    'stray note to oneself',
    new RegExp(`\\b(?:${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`, 'g'),
  ],
  ['silenced compiler', new RegExp('@ts-' + '(?:ignore|nocheck|expect-error)', 'g')],
]
/** Functions with the same body must be one function from this number of lines. */
const SAME_BODY_LINES = 6

const RULES: readonly (readonly [string, () => string[]])[] = [
  ['rooms import only from the rooms that the table of rooms allows', rooms],
  ['modules of Node and packages are imported only where MODULES allows it', modules],
  // Cycles of types are allowed, because types are not loaded.
  ['imports have no cycles', cycles],
  ['a reactor loads none of the modules of NOT_IN_A_REACTOR', reactorGraph],
  ['llhttp is imported by one file', llhttp],
  ['every export is used by another file', deadExports],
  ['every file is imported, started or documented', deadFiles],
  [`no file is longer than ${LINES_MAX} lines`, longFiles],
  [`no function is longer than ${FUNCTION_LINES_MAX} lines`, longFunctions],
  [`no line is wider than ${COLUMNS_MAX} columns`, wideLines],
  ['no two functions have the same body', sameBodies],
  ['no file or folder has a name of BANNED_NAMES', bannedNames],
  ['no file contains banned code or text', bannedText],
  ['classes with a machine or a socket have no state besides it', fieldsBesideState],
  ['every metric is counted', countedMetrics],
  ['every room has a README of at most 60 lines', roomReadmes],
  ['a decision that code cites stands in exactly one README', decisions],
  ['every source file that a document names exists', documentedFiles],
  [`ARCHITECTURE.md has at most ${ARCHITECTURE_BYTES_MAX} bytes`, architectureSize],
]

const TREE = readTree()
const FILES = [...TREE.values()]
const SOURCES = FILES.filter(file => file.path.startsWith('src/'))

for (const [rule, violations] of RULES) {
  test(rule, () => {
    const found = violations()
    // A comparison with [] would cut the list.
    if (found.length > 0) assert.fail(found.join('\n'))
  })
}

function readRooms(document: string): ReadonlyMap<string, readonly string[]> {
  const rows = [...document.matchAll(/^\| `([a-z0-9/-]+)` \|[^|]*\|([^|]*)\|$/gm)]
  return new Map(
    rows.map(([, room, imports]) => [room!, [...imports!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)]),
  )
}

/** The room with the longest name that contains a file; '' for files in src itself. */
function roomOf(path: string): string {
  const folder = path.split('/').slice(1, -1)
  while (folder.length > 0 && !ROOMS.has(folder.join('/'))) folder.pop()
  return folder.join('/')
}

function rooms(): string[] {
  assert.ok(ROOMS.size > 20, 'the table of rooms was not found')
  return SOURCES.flatMap(({ path, imports }) => {
    const room = roomOf(path)
    if (room === '') return path.split('/').length === 2 ? [] : [`${path}: its folder is not in the table of rooms`]
    const allowed = [room, 'runtime', ...ROOMS.get(room)!]
    return imports
      .filter(({ from, isLocal }) => isLocal && !(from.startsWith('src/') && allowed.includes(roomOf(from))))
      .map(({ from }) => `${path} imports ${from}`)
  })
}

function modules(): string[] {
  return SOURCES.flatMap(({ path, imports }) =>
    imports
      .filter(({ from, isLocal, isTypeOnly }) => {
        const row = isLocal || isTypeOnly ? undefined : MODULES.find(([module]) => module.test(from))
        return row !== undefined && !row[1].some(owner => owner === path || owner === roomOf(path))
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
    for (const { from, isLocal, isTypeOnly } of TREE.get(name)?.imports ?? []) if (isLocal && !isTypeOnly) visit(from)
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
    for (const { from, isLocal, isTypeOnly } of TREE.get(name)?.imports ?? []) {
      if (isTypeOnly) continue
      if (isLocal) visit(from)
      else if (NOT_IN_A_REACTOR.includes(from) && !LOADS_ON_FIRST_USE.includes(name))
        found.push(`${name}, loaded by a reactor, imports ${from}`)
    }
  }
  visit(REACTOR_ENTRY)
  assert.ok(seen.has('src/reactor/reactor.ts'), 'the entry of a reactor was not found')
  const atStart = new Set(['src/reactor/reactor-thread.ts'])
  for (const name of atStart) {
    for (const { from, isLocal, isTypeOnly, isCall } of TREE.get(name)?.imports ?? []) {
      if (isLocal && !isTypeOnly && !isCall) atStart.add(from)
    }
  }
  const early = NOT_AT_THE_START_OF_A_REACTOR.filter(name => atStart.has(name))
  return [...found, ...early.map(name => `${name} is loaded by every reactor`)]
}

function llhttp(): string[] {
  const owners = SOURCES.filter(({ uncommented }) => /'undici\/lib\/llhttp/.test(uncommented)).map(({ path }) => path)
  return owners.length === 1 ? [] : [`expected one file, found: ${owners.join(', ')}`]
}

/** Exports of a file that is started by its path belong to whoever starts it, such as piscina. */
function deadExports(): string[] {
  const used = new Set<string>()
  for (const { imports } of FILES)
    for (const { from, names } of imports) for (const name of names) used.add(`${from}#${name}`)
  const isStarted = (path: string): boolean => FILES.some(({ starts }) => starts(path))
  return FILES.filter(({ path }) => !used.has(`${path}#*`)).flatMap(({ path, exports }) => {
    const dead = exports.filter(name => !used.has(`${path}#${name}`))
    return dead.length === 0 || isStarted(path) ? [] : dead.map(name => `${path}: ${name}`)
  })
}

/** Files that are not imported, not started as a thread or process, not documented, and no micro-benchmark. */
function deadFiles(): string[] {
  const imported = new Set(FILES.flatMap(({ imports }) => imports.map(({ from }) => from)))
  const documented = ['package.json', 'README.md', 'ARCHITECTURE.md', 'bench/README.md'].map(readRootFile).join()
  return FILES.map(({ path }) => path)
    .filter(
      // A page loads the scripts of its folder itself.
      path =>
        !/\.(?:test|d)\.ts$|^bench\/micro\/|\/page\/main\.js$/.test(path) &&
        !documented.includes(path) &&
        !imported.has(path),
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
  return FILES.filter(({ path }) => !DATA_TABLES.includes(path)).flatMap(({ path, text, code, uncommented }) => {
    const codeLines = code.split('\n')
    const uncommentedLines = uncommented.split('\n')
    const isLiteral = (at: number): boolean =>
      LITERAL.test(codeLines[at]!) || (codeLines[at]!.trim() === '' && uncommentedLines[at]!.trim() !== '')
    return text
      .split('\n')
      .flatMap((line, at) =>
        line.length > COLUMNS_MAX && !(path.startsWith('test/') && isLiteral(at))
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

function fieldsBesideState(): string[] {
  const owner = /^ {2}(?:\w+ )*#?\w+[!?]?(?:: | = new )(?:ByteSocket|Machine|TcpHandle|TlsHandle|Socket|TLSSocket)\b/m
  const field = /^ {2}(?:(?:override|private|protected|public) )*(#?\w+)[!?]?(?:: ([^=\n(]+?))?(?: = ([^\n]*))?$/gm
  const found = SOURCES.flatMap(({ path, code }) =>
    [...code.matchAll(/^(?:export )?(?:abstract )?class \w+[^{]*\{\n([\s\S]*?)^\}/gm)]
      .filter(([, body]) => owner.test(body!))
      .flatMap(([, body]) => [...body!.matchAll(field)])
      .filter(([, , type, value = '']) =>
        type === undefined ? /^(?:true|false|null|['"`])/.test(value) : /\b(?:boolean|string|null)\b(?!\[)/.test(type),
      )
      .map(([, name]) => ({ path, name: name! })),
  )
  const listed = Object.entries(FIELDS_BESIDE_STATE).flatMap(([path, names]) =>
    Object.keys(names).map(name => `${path}: ${name}`),
  )
  const stale = listed.filter(line => !found.some(({ path, name }) => line === `${path}: ${name}`))
  return [
    ...found
      .filter(({ path, name }) => FIELDS_BESIDE_STATE[path]?.[name] === undefined)
      .map(({ path, name }) => `${path}: ${name}`),
    ...stale.map(line => `${line} is listed and gone`),
  ]
}

function countedMetrics(): string[] {
  const owner = TREE.get('src/observe/metric-rows.ts')!
  const names = [...owner.uncommented.matchAll(/^ {2}(\w+): \['(?:counter|gauge)'/gm)].map(match => match[1]!)
  assert.ok(names.length > 10, 'the table of metrics was not found')
  const others = SOURCES.filter(file => file !== owner).map(({ code }) => code)
  return names.filter(name => !others.some(code => new RegExp(`\\bMETRIC\\.${name}\\b`).test(code)))
}

function readmeOf(room: string): string {
  return `src/${room}/README.md`
}

function roomReadmes(): string[] {
  return [...ROOMS.keys()].map(readmeOf).flatMap(path => {
    const lines = readRootFile(path).split('\n').length - 1
    return lines >= 1 && lines <= README_LINES_MAX ? [] : [`${path}: ${lines} lines`]
  })
}

function decisions(): string[] {
  const places = new Map<string, string[]>()
  for (const path of [...ROOMS.keys()].map(readmeOf)) {
    for (const [, decision] of readRootFile(path).matchAll(/\*\*(D\d+)\.\*\*/g)) {
      places.set(decision!, [...(places.get(decision!) ?? []), path])
    }
  }
  const twice = [...places]
    .filter(([, paths]) => paths.length > 1)
    .map(([name, paths]) => `${name}: ${paths.join(', ')}`)
  const cited = FILES.flatMap(({ path, text }) =>
    [...text.matchAll(/(?<=[(,] ?)(D\d{1,3})(?=[,)])/g)]
      .filter(([, decision]) => !places.has(decision!))
      .map(([, decision]) => `${path}: ${decision}`),
  )
  return [...twice, ...cited]
}

const PATHS = new Set(FILES.map(({ path }) => path))

function isFile(pattern: string): boolean {
  return pattern.includes('*') ? [...PATHS].some(path => matchesGlob(path, pattern)) : PATHS.has(pattern)
}

/** Files in backticks, with wildcards or a placeholder NAME: below the root, below src, or beside the document. */
function documentedFiles(): string[] {
  const documents = ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'test/README.md', 'README.md']
  return [...documents, ...[...ROOMS.keys()].map(readmeOf)].flatMap(document =>
    [...readRootFile(document).matchAll(/`(\w[\w*./-]*\.[jt]s)`/g)]
      .map(([, name]) => name!)
      .filter(name => {
        const pattern = name.replace('NAME', '*')
        return !['', 'src/', `${dirname(document)}/`].some(folder => isFile(normalize(folder + pattern)))
      })
      .map(name => `${document}: ${name}`),
  )
}

function architectureSize(): string[] {
  const bytes = Buffer.byteLength(readRootFile('ARCHITECTURE.md'))
  return bytes <= ARCHITECTURE_BYTES_MAX ? [] : [`${bytes} bytes`]
}
