/**
 * Groups whose backends change their health at random under requests of all kinds: every request gets one response,
 * bodies arrive whole and once, and all memory of the arena is released.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { takeResponse } from '../harness/responses.ts'
import { UnreliableBackend, startEndpoints } from '../harness/unreliable-backend.ts'
import { connectPeer, eventually, turn } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

const ROUNDS = IS_LONG ? 2000 : 25
const CLIENTS = 8
const BODIES = [0, 1, 1000, 70_000, 300_000]

const BALANCED = { kind: 'load_balance', algorithm: 'round_robin' } as const
const BRIEF = { suspensionMs: 100, suspensionFactor: 2, suspensionMaxMs: 200 }
/** Group, suspension settings, and the least numbers of failovers and of suspensions. */
const CASES = [
  [{ kind: 'failover' }, { suspensionMs: 0 }, 5, 0],
  [{ kind: 'failover' }, BRIEF, 0, 1],
  [BALANCED, { suspensionMs: 0 }, 5, 0],
  [BALANCED, BRIEF, 0, 1],
  [{ ...BALANCED, algorithm: 'weighted' }, { suspensionMs: 0 }, 5, 0],
  [{ ...BALANCED, algorithm: 'least_pending' }, { suspensionMs: 0 }, 5, 0],
  [{ ...BALANCED, failsOver: false }, BRIEF, 0, 1],
] as const

for (const [group, settings, leastFailovers, leastSuspensions] of CASES) {
  const name = `${Object.values(group).join(', ')} with suspensions of ${settings.suspensionMs} ms`
  test(`${name}: every request to backends that fail at random gets one response (seed ${SEED})`, async t => {
    const random = new Random(SEED)
    const backends = await Promise.all(['a', 'b', 'c'].map(name => UnreliableBackend.start(name)))
    let isOver = false
    const ports = backends.map(({ port }) => port)
    const gateway = await startEndpoints(
      { ...group, ports, settings },
      { 'http.socket.timeout': 100, disable_connection_keepalive: true },
    )
    t.after(async () => {
      isOver = true
      gateway.stop()
      for (const backend of backends) await backend.stop()
    })
    const atRest = arena.acquiredChunks
    const change = async (backend: UnreliableBackend): Promise<void> => {
      for (let turns = random.between(1, 60); turns > 0; turns--) await turn()
      if (random.once(4)) {
        await backend.stop()
        await backend.listen()
      }
      backend.behaviour = random.pick([
        'responds',
        'responds',
        'responds',
        'closes',
        'resets',
        'hangs',
        'fails with 500',
      ])
    }
    const failures = (async () => {
      while (!isOver) for (const backend of backends) await change(backend)
    })()
    // Drops the checked bodies: a long run would record gigabytes.
    const checkBodies = (): void => {
      for (const backend of backends) assertWhole(backend.bodies.splice(0))
    }
    const counts = () => ({
      failovers: gateway.metrics().counts.failovers,
      suspensions: backends.reduce((sum, _, slot) => sum + gateway.table.read(slot).suspensions, 0),
    })
    // Whether a failure meets a request depends on timing: rounds continue until the least numbers are reached.
    const goesOn = (round: number): boolean => {
      const { failovers, suspensions } = counts()
      return round < ROUNDS || (round < ROUNDS * 10 && (failovers < leastFailovers || suspensions < leastSuspensions))
    }
    const clients = Array.from({ length: CLIENTS }, (_, client) =>
      sendRequests(gateway.port, client, random, goesOn, checkBodies),
    )
    await Promise.all(clients)
    isOver = true
    await failures
    assert.deepEqual(
      gateway.reports.filter(({ level }) => level === 'error'),
      [],
    )
    const { failovers, suspensions } = counts()
    assert.ok(
      failovers >= leastFailovers && suspensions >= leastSuspensions,
      `${failovers} failovers, ${suspensions} suspensions`,
    )
    checkBodies()
    for (const [slot] of backends.entries()) assert.equal(gateway.table.pending(slot), 0)
    for (const backend of backends) await backend.stop()
    await eventually('the end of all connections', () => gateway.metrics().counts.targetsOpen === 0)
    await eventually('the release of all chunks', () => arena.acquiredChunks <= atRest)
  })
}

/** Sends one request after the other, each on a new connection, and takes one response to each. */
async function sendRequests(
  port: number,
  client: number,
  random: Random,
  goesOn: (round: number) => boolean,
  checkBodies: () => void,
): Promise<void> {
  for (let round = 0; goesOn(round); round++) {
    const peer = await connectPeer(port)
    const length = random.pick(BODIES)
    const body = String.fromCharCode(97 + client).repeat(length)
    const method = length === 0 ? random.pick(['GET', 'DELETE', 'POST']) : random.pick(['POST', 'PUT'])
    peer.send(`${method} /t/${client}/${round} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${body}`)
    const { status } = await takeResponse(peer)
    assert.ok([200, 500, 502, 503, 504].includes(status), String(status))
    peer.destroy()
    checkBodies()
  }
}

/** No body has anything of another request in it, and none that arrived is cut short. */
function assertWhole(bodies: readonly string[]): void {
  for (const body of bodies) {
    assert.ok(BODIES.includes(body.length), `${body.length} bytes`)
    assert.ok(body === '' || body === body[0]!.repeat(body.length))
  }
}
