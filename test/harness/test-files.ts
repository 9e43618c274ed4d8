/** The test files, and how `npm test` runs them: the socket levels and the processes. */
import { globSync } from 'node:fs'
import { resolve } from 'node:path'
import { nearest } from '../../src/config/nearest.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** Folders whose files start gateways, threads or programs: each file runs in its own process. */
const ISOLATED = ['bench', 'control', 'events', 'process', 'proxy', 'socket', 'throttle']
/** Files that run on both socket levels, because their results depend on sockets. */
const ON_BOTH_LEVELS = ['test/proxy/*.test.ts', 'test/socket/*.test.ts']
/**
 * Files of test/proxy that run on the handles level only: they prove decisions of filters, faults and routing, which do
 * not depend on sockets. Every failure on the streams level so far concerned reading, writing or closing.
 */
const ON_HANDLES_ALONE = [
  ...['authentication', 'backend-credentials', 'backend-jwt', 'cors-preflights', 'cors-responses', 'cors-sequence'],
  ...['endpoint-states', 'escaped-slashes', 'fault-codes', 'fault-sequences', 'lifecycle', 'max-forwards'],
  ...['path-tricks', 'reload-apis', 'reload-settings', 'resources', 'routing', 'stripped-fields', 'traced-requests'],
  ...['warn-on-500', 'websocket-sequences'],
].map(name => `test/proxy/${name}.test.ts`)

export const LEVELS = ['handles', 'streams'] as const
export type Level = (typeof LEVELS)[number]

function find(pattern: string): readonly string[] {
  return globSync(pattern, { cwd: ROOT }).sort()
}

function isIsolated(file: string): boolean {
  return ISOLATED.includes(file.split('/')[1]!)
}

/** Paths of the files that one process runs together (test/all-rooms.test.ts), from the root. */
export function sharedFiles(): readonly string[] {
  return find('test/*/**/*.test.ts').filter(file => !isIsolated(file))
}

/** Paths of the files that each run in their own process, from the root. */
export function isolatedFiles(level: Level): readonly string[] {
  if (level === 'streams') return ON_BOTH_LEVELS.flatMap(find).filter(file => !ON_HANDLES_ALONE.includes(file))
  return [...find('test/*.test.ts'), ...find('test/*/**/*.test.ts').filter(isIsolated)]
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
