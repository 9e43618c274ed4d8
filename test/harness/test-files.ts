/** The test files, and how `npm test` runs them: the socket levels and the processes. */
import { globSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nearest } from '../../src/config/nearest.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** What each test process runs. */
export const ENTRY = fileURLToPath(new URL('./run-files.ts', import.meta.url))

/** Folders whose files start gateways, threads or programs, with the number of files that one process runs in turn. */
const FILES_PER_PROCESS: Readonly<Record<string, number>> = {
  ...{ bench: 3, control: 8, delivery: 3, events: 3, mounted: 8, process: 3, proxy: 8, socket: 8, throttle: 4 },
  ...{ tune: 8, worker: 4 },
}
/** The same for the files of all other folders together. */
const FILES_PER_SHARED_PROCESS = 50
/** Files with a process of their own: they measure its memory, exhaust its arena, or count its sockets. */
const ALONE = [
  ...['proxy/backpressure', 'proxy/exchange/read-buffer', 'proxy/memory-exhaustion'],
  ...['proxy/reload-load', 'proxy/reload-threads', 'proxy/secured-memory', 'socket/endings'],
].map(name => `test/${name}.test.ts`)
/** The files that take longest begin first. */
const LONGEST = ['package', 'documents', 'notifications', 'handlers', 'upgrade', 'traffic-manager'].map(
  name => `test/process/${name}.test.ts`,
)
/** Files that run on both socket levels, because their results depend on sockets. */
const ON_BOTH_LEVELS = ['test/proxy/*.test.ts', 'test/socket/*.test.ts']
/**
 * Files of test/proxy that run on the handles level only: they prove decisions of filters, limits, faults, routing
 * and mediation, which do not depend on sockets. Every failure on the streams level so far concerned reading, writing
 * or closing.
 */
const ON_HANDLES_ALONE = [
  ...['analytics-events', 'api-policies', 'authentication', 'authentication-schemes', 'backend-credentials'],
  ...['backend-jwt', 'body-checks', 'caller-properties', 'claim-policy', 'cors-preflights', 'cors-responses'],
  ...['cors-sequence', 'endpoint-groups', 'endpoint-oauth', 'endpoint-states'],
  ...['endpoint-suspension', 'escaped-slashes', 'every-mediator', 'fault-codes', 'fault-flows', 'fault-sequences'],
  ...['flow-fields', 'flow-order', 'graphql', 'graphql-subscriptions', 'handlers', 'head-edits', 'head-flows'],
  ...['interceptor', 'kept-responses', 'late-faults', 'late-flows', 'lifecycle', 'max-forwards', 'mediated-bodies'],
  ...['mediated-mixed', 'mediated-threads', 'path-tricks', 'readiness-path', 'recipient-lists'],
  ...['reload-apis', 'reload-settings', 'reload-threads', 'request-loops', 'resources', 'routing'],
  ...['schema-validation', 'schema-validation-bodies', 'schema-validation-parts', 'schema-validation-styles'],
  ...['schema-validation-xml', 'sent-copies', 'sent-responses', 'sequence-backends', 'sequence-calls'],
  ...['sequence-copies', 'sequence-endpoints', 'sequence-examples', 'sequence-secrets', 'stripped-fields'],
  ...['throttling-conditions', 'throttling-denials', 'throttling-levels', 'throttling-responses', 'throttling-tiers'],
  ...['topic-policies', 'trace-context', 'traced-calls', 'traced-flows', 'traced-requests', 'transport-properties'],
  ...['warn-on-500', 'websocket-sequences'],
].map(name => `test/proxy/${name}.test.ts`)

export const LEVELS = ['handles', 'streams'] as const
export type Level = (typeof LEVELS)[number]

function find(pattern: string): readonly string[] {
  return globSync(pattern, { cwd: ROOT }).sort()
}

/** Paths of the files that run on a level, from the root. */
export function filesOfLevel(level: Level): readonly string[] {
  if (level === 'streams') return ON_BOTH_LEVELS.flatMap(find).filter(file => !ON_HANDLES_ALONE.includes(file))
  return find('test/**/*.test.ts')
}

/** The folder whose files share processes; '' for those of rooms without threads and sockets. */
function sharingOf(file: string): string {
  const folder = file.split('/')[1]!
  return folder in FILES_PER_PROCESS ? folder : ''
}

/**
 * The files that each process runs, in the order in which the processes begin. A process of its own for each file would
 * load the sources again, which takes a fifth of the time of all tests.
 */
export function processesOf(files: readonly string[]): readonly (readonly string[])[] {
  const isAlone = (file: string): boolean => LONGEST.includes(file) || ALONE.includes(file)
  const alone = [...LONGEST, ...ALONE].filter(file => files.includes(file)).map(file => [file])
  const shared = Map.groupBy(
    files.filter(file => !isAlone(file)),
    sharingOf,
  )
  const groups = [...shared].flatMap(([folder, files]) => {
    const most = FILES_PER_PROCESS[folder] ?? FILES_PER_SHARED_PROCESS
    const starts = files.map((_, at) => at).filter(at => at % most === 0)
    // Neighbours load the same sources.
    return starts.map(at => files.slice(at, at + most))
  })
  return [...alone, ...groups]
}

/** Test files at or below a path; `http1` and `test/http1` are the same room. */
export function filesBelow(path: string): readonly string[] {
  const named = path.startsWith('test/') ? path : `test/${path}`
  return named.endsWith('.ts') ? find(named) : find(`${named.replace(/\/$/, '')}/**/*.test.ts`)
}

/** The room or test file that a path without tests was meant to be; '' where none is similar. */
export function nearestTo(path: string): string {
  const wanted = path.replace(/^test\/|\/$/g, '')
  const files = find('test/**/*.test.ts').map(file => file.slice('test/'.length))
  const rooms = new Set(files.filter(file => file.includes('/')).map(file => file.slice(0, file.indexOf('/'))))
  const nearestPath = nearest(wanted, [...rooms, ...files])
  // The folder may be the wrong part, or missing.
  return nearestPath || (files.find(file => file.endsWith(`/${wanted.slice(wanted.lastIndexOf('/') + 1)}`)) ?? '')
}
