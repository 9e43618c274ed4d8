/**
 * TLS handshakes from several processes of `openssl s_time`: each opens one connection after the other, sends a
 * request, and reads to the end. wrk is unsuitable, because it always resumes its sessions.
 */
import { requestHead } from '../request-head.ts'
import { findExecutable, runToEnd, LOAD_CORE, pinned } from '../program.ts'
import type { HandshakePlan, LoadOutcome } from './load-plan.ts'

const COUNT_LINE = /^(\d+) connections in \d+ real seconds, (\d+) bytes read per connection$/m
/** Output of s_time: one letter per connection, r for a resumed session, others for a new one. */
const SESSION_LETTERS = /^[r*t]+$/

/**
 * s_time writes `GET PATH HTTP/1.0`. A path with line ends makes this a complete HTTP/1.1 request, whose last field
 * contains the remaining text.
 */
function pathWithHead(path: string): string {
  const head = requestHead('GET', path, { Connection: 'close' })
  return `${head.slice('GET '.length, -'\r\n'.length)}X-End:`
}

interface HandshakeCount {
  readonly connections: number
  readonly notResumed: number
}

function countHandshakes(printed: string, plan: HandshakePlan): HandshakeCount {
  const [, connections, bytes] = COUNT_LINE.exec(printed.slice(plan.resumed ? printed.indexOf('reuse') : 0)) ?? []
  if (connections === undefined) throw new Error(`openssl s_time printed no count:\n${printed.slice(-500)}`)
  if (Number(bytes) < plan.downloadBytes) throw new Error(`openssl s_time read ${bytes} bytes per connection`)
  const letters = printed.split('\n').filter(line => SESSION_LETTERS.test(line))
  const resumed = letters.join('').replaceAll(/[^r]/g, '').length
  return { connections: Number(connections), notResumed: plan.resumed ? Number(connections) - resumed : 0 }
}

/** If sessions are to be resumed, connections with a new session count as errors. */
export async function driveHandshakes(plan: HandshakePlan): Promise<LoadOutcome> {
  const openssl = findExecutable('openssl')
  if (openssl === undefined) throw new Error('not installed: apt-get install openssl')
  const target = ['-connect', `127.0.0.1:${plan.port}`, '-www', pathWithHead(plan.path)]
  const shape = [plan.resumed ? '-reuse' : '-new', '-time', String(Math.max(1, Math.round(plan.seconds)))]
  const command = pinned(LOAD_CORE, [openssl, 's_time', ...shape, ...target])
  const startMs = performance.now()
  const runs = Array.from({ length: plan.clients }, () => runToEnd('openssl s_time', command, plan.environment))
  const counts = (await Promise.all(runs)).map(printed => countHandshakes(printed, plan))
  return {
    requests: counts.reduce((sum, { connections }) => sum + connections, 0),
    seconds: (performance.now() - startMs) / 1000,
    errors: counts.reduce((sum, { notResumed }) => sum + notResumed, 0),
  }
}
