/**
 * Groups whose backends change their health at random while requests of all kinds go through: every one of them gets
 * one answer, bodies arrive whole and once, and nothing of the arena is left lent.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arena } from '../../src/http1/llhttp.ts'
import { takeAnswer } from '../harness/answers.ts'
import { Patient, startEndpoints } from '../harness/endpoints.ts'
import { connectPeer, eventually, turn } from '../harness/peers.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

const ROUNDS = IS_LONG ? 2000 : 25
const CLIENTS = 8
const BODIES = [0, 1, 1000, 70_000, 300_000]

const BALANCED = { kind: 'load_balance', algorithm: 'round_robin' } as const
const BRIEF = { initialMs: 100, factor: 2, maximumMs: 200 }
/** [group, what failures mean, the least number of requests that were handed over, and of suspensions]. */
const SKETCHES = [
  [{ kind: 'failover' }, { initialMs: 0 }, 5, 0],
  [{ kind: 'failover' }, BRIEF, 0, 1],
  [BALANCED, { initialMs: 0 }, 5, 0],
  [BALANCED, BRIEF, 0, 1],
  [{ ...BALANCED, algorithm: 'weighted' }, { initialMs: 0 }, 5, 0],
  [{ ...BALANCED, algorithm: 'least_pending' }, { initialMs: 0 }, 5, 0],
  [{ ...BALANCED, failsOver: false }, BRIEF, 0, 1],
] as const

for (const [sketch, settings, handedOver, suspended] of SKETCHES) {
  test(`${Object.values(sketch).join(', ')}, first suspension ${settings.initialMs} ms, seed ${SEED}`, async t => {
    const random = new Random(SEED)
    const backends = await Promise.all(['a', 'b', 'c'].map(name => Patient.start(name)))
    let isOver = false
    const ports = backends.map(({ port }) => port)
    const gateway = await startEndpoints(
      { ...sketch, ports, settings },
      { 'http.socket.timeout': 100, disable_connection_keepalive: true },
    )
    t.after(async () => {
      isOver = true
      gateway.stop()
      for (const backend of backends) await backend.die()
    })
    const atRest = arena.lentChunks
    const change = async (backend: Patient): Promise<void> => {
      for (let turns = random.between(1, 60); turns > 0; turns--) await turn()
      if (random.once(4)) {
        await backend.die()
        await backend.revive()
      }
      backend.health = random.pick(['well', 'well', 'well', 'closes', 'resets', 'hangs', 'errs'])
    }
    const illness = (async () => {
      while (!isOver) for (const backend of backends) await change(backend)
    })()
    // What is kept of a long run would be gigabytes.
    const judge = (): void => {
      for (const backend of backends) assertWhole(backend.bodies.splice(0))
    }
    const seen = () => ({
      handovers: gateway.metrics().counts.handovers,
      suspensions: backends.reduce((sum, _, row) => sum + gateway.table.read(row).suspensions, 0),
    })
    // How often a failure meets a request is chance, whatever the seed: rounds go on until it has been often enough.
    const goesOn = (round: number): boolean => {
      const { handovers, suspensions } = seen()
      return round < ROUNDS || (round < ROUNDS * 10 && (handovers < handedOver || suspensions < suspended))
    }
    const asks = Array.from({ length: CLIENTS }, (_, client) => ask(gateway.port, client, random, goesOn, judge))
    await Promise.all(asks)
    isOver = true
    await illness
    assert.deepEqual(
      gateway.reports.filter(({ level }) => level === 'error'),
      [],
    )
    const { handovers, suspensions } = seen()
    assert.ok(handovers >= handedOver && suspensions >= suspended, `${handovers} handed over, ${suspensions} suspended`)
    judge()
    for (const [row] of backends.entries()) assert.equal(gateway.table.pending(row), 0)
    for (const backend of backends) await backend.die()
    await eventually('the end of all connections', () => gateway.metrics().counts.targetsOpen === 0)
    await eventually('an arena at rest', () => arena.lentChunks <= atRest)
  })
}

/** One request after the other, each with one answer; a fault may end the connection. */
async function ask(
  port: number,
  client: number,
  random: Random,
  goesOn: (round: number) => boolean,
  judge: () => void,
): Promise<void> {
  for (let round = 0; goesOn(round); round++) {
    const peer = await connectPeer(port)
    const length = random.pick(BODIES)
    const body = String.fromCharCode(97 + client).repeat(length)
    const method = length === 0 ? random.pick(['GET', 'DELETE', 'POST']) : random.pick(['POST', 'PUT'])
    peer.send(`${method} /t/${client}/${round} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${body}`)
    const { status } = await takeAnswer(peer)
    assert.ok([200, 500, 502, 503, 504].includes(status), String(status))
    peer.destroy()
    judge()
  }
}

/** No body has anything of another request in it, and none that arrived is cut short. */
function assertWhole(bodies: readonly string[]): void {
  for (const body of bodies) {
    assert.ok(BODIES.includes(body.length), `${body.length} bytes`)
    assert.ok(body === '' || body === body[0]!.repeat(body.length))
  }
}
