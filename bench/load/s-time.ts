/**
 * TLS handshakes from `openssl s_time`, several processes of it: each opens one connection after the other, sends a
 * request, and reads to the end. wrk would not do: it continues its sessions whether one wants it or not.
 */
import { requestHead } from '../request-head.ts'
import { findExecutable, finished, LOAD_CORE, pinned } from '../program.ts'
import type { HandshakePlan, LoadOutcome } from './load-plan.ts'

const COUNTED = /^(\d+) connections in \d+ real seconds, (\d+) bytes read per connection$/m
/** It prints a letter for each connection: r for a session that was resumed, others for one that was not. */
const LETTERS = /^[r*t]+$/

/**
 * It writes `GET PATH HTTP/1.0`; a path with line ends in it makes a whole request of our own of that, whose last field
 * takes up the rest.
 */
function pathWithHead(path: string): string {
  const head = requestHead('GET', path, { Connection: 'close' })
  return `${head.slice('GET '.length, -'\r\n'.length)}X-End:`
}

interface Count {
  readonly connections: number
  readonly notResumed: number
}

function countOf(printed: string, plan: HandshakePlan): Count {
  const [, connections, bytes] = COUNTED.exec(printed.slice(plan.resumed ? printed.indexOf('reuse') : 0)) ?? []
  if (connections === undefined) throw new Error(`openssl s_time printed no count:\n${printed.slice(-500)}`)
  if (Number(bytes) < plan.downloadBytes) throw new Error(`openssl s_time read ${bytes} bytes per connection`)
  const letters = printed.split('\n').filter(line => LETTERS.test(line))
  const resumed = letters.join('').replaceAll(/[^r]/g, '').length
  return { connections: Number(connections), notResumed: plan.resumed ? Number(connections) - resumed : 0 }
}

/** Connections that were to continue a session and did not count as errors. */
export async function driveHandshakes(plan: HandshakePlan): Promise<LoadOutcome> {
  const openssl = findExecutable('openssl')
  if (openssl === undefined) throw new Error('not installed: apt-get install openssl')
  const target = ['-connect', `127.0.0.1:${plan.port}`, '-www', pathWithHead(plan.path)]
  const shape = [plan.resumed ? '-reuse' : '-new', '-time', String(Math.max(1, Math.round(plan.seconds)))]
  const command = pinned(LOAD_CORE, [openssl, 's_time', ...shape, ...target])
  const startMs = performance.now()
  const runs = Array.from({ length: plan.clients }, () => finished('openssl s_time', command, plan.environment))
  const counts = (await Promise.all(runs)).map(printed => countOf(printed, plan))
  return {
    requests: counts.reduce((sum, { connections }) => sum + connections, 0),
    seconds: (performance.now() - startMs) / 1000,
    errors: counts.reduce((sum, { notResumed }) => sum + notResumed, 0),
  }
}
