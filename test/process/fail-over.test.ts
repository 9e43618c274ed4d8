/**
 * One of two back ends falls ill under load and gets well again: every request is answered, the healthy one takes over,
 * the sick one comes back by itself.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { takeAnswer } from '../harness/answers.ts'
import { Patient } from '../harness/endpoints.ts'
import { openProject } from '../harness/open-project.ts'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { eventually, type Peer, connectPeer } from '../harness/peers.ts'
import { freePort, type RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

after(leave)

const CLIENTS = 8
/** Between the requests of a client: the load is not what is tried here. */
const PAUSE_MS = 8
const CONFIG = { actionSelect: 'fault', actionDuration: '300', suspendDuration: '300', factor: '1' }

interface Setting {
  readonly gateway: RunningGateway
  readonly a: Patient
  readonly b: Patient
}

async function begin(algorithm: string): Promise<Setting> {
  const [a, b] = await Promise.all([Patient.start('a'), Patient.start('b')])
  const at = home()
  const endpointConfig = {
    endpoint_type: 'load_balance',
    algorithm,
    failOver: 'True',
    production_endpoints: [a, b].map(({ port }) => ({ url: `http://127.0.0.1:${port}`, config: CONFIG })),
  }
  put(at, 'apis/Test/api.yaml', openProject({ name: 'Test', context: '/t', endpointConfig }))
  const port = await freePort()
  const sets = ['transport.passthru_http.reactors=2', `transport.passthru_http.listener.parameters.port=${port}`]
  return { gateway: await start(at, sets), a, b }
}

/** Clients that ask one request after the other, each on its own connection, until told to stop. */
class Load {
  readonly answers: string[] = []
  #isOver = false
  #clients: readonly Promise<void>[] = []

  async start({ port }: RunningGateway): Promise<void> {
    const peers = await Promise.all(Array.from({ length: CLIENTS }, () => connectPeer(port)))
    this.#clients = peers.map(peer => this.#ask(peer))
  }

  async #ask(peer: Peer): Promise<void> {
    while (!this.#isOver) {
      peer.send('GET /t/ HTTP/1.1\r\nHost: a\r\n\r\n')
      const { status, body } = await takeAnswer(peer)
      this.answers.push(status === 200 ? body : `${status} ${body}`)
      await sleep(PAUSE_MS)
    }
    peer.destroy()
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#clients)
  }

  /** Waits for so many further answers of that one. */
  async further(count: number, body: string): Promise<void> {
    let at = this.answers.length
    let found = 0
    await eventually(`${count} answers of ${body}`, () => {
      for (; at < this.answers.length; at++) if (this.answers[at] === body) found++
      return found >= count
    })
  }
}

/** [what it does, how it falls ill and gets well while the load goes on]. */
const ILLNESSES: readonly (readonly [string, (sick: Patient, load: Load) => Promise<void>])[] = [
  [
    'dies',
    async (sick, load) => {
      await sick.die()
      await load.further(300, 'b')
      await sick.revive()
    },
  ],
  [
    'hangs',
    async (sick, load) => {
      sick.health = 'hangs'
      await eventually('requests that hang', () => sick.held > 0)
      await load.further(300, 'b')
      sick.health = 'well'
    },
  ],
  [
    'closes without an answer',
    async (sick, load) => {
      sick.health = 'closes'
      await load.further(300, 'b')
      sick.health = 'well'
    },
  ],
  [
    'flaps',
    async (sick, load) => {
      for (let i = 0; i < 5; i++) {
        await sick.die()
        await load.further(50, 'b')
        await sick.revive()
        await load.further(10, 'a')
      }
    },
  ],
]

for (const algorithm of ['round_robin', 'least_pending']) {
  let begun: Promise<Setting> | undefined
  after(async () => {
    const { a, b } = await begun!
    await a.die()
    await b.die()
  })

  for (const [what, fallIll] of ILLNESSES) {
    test(`${algorithm}: a backend that ${what} under load: every request is answered, and it comes back`, async () => {
      begun ??= begin(algorithm)
      const { gateway, a } = await begun
      const load = new Load()
      await load.start(gateway)
      await load.further(50, 'a')
      await fallIll(a, load)
      await load.further(50, 'a')
      await load.stop()
      const others = load.answers.filter(answer => answer !== 'a' && answer !== 'b')
      assert.deepEqual(others, [])
      const { out } = await sluice(gateway.home, 'endpoints', '--json')
      const rows: readonly { state: string; suspensions: number }[] = JSON.parse(out)
      assert.deepEqual(
        rows.map(({ state }) => state),
        ['ACTIVE', 'ACTIVE'],
      )
      assert.equal(rows[1]!.suspensions, 0, 'the healthy one was never suspended')
    })
  }
}
