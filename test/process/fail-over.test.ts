/** One of two backends fails under load and recovers: every request is answered, and the backend comes back. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { takeResponse } from '../harness/responses.ts'
import { UnreliableBackend } from '../harness/unreliable-backend.ts'
import { openProject } from '../harness/open-project.ts'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { eventually, type Peer, connectPeer } from '../harness/peers.ts'
import { freePort, type RunningGateway } from '../harness/program.ts'
import { put } from '../harness/reloading.ts'

after(leave)

const CLIENTS = 8
/** Pause between the requests of a client: this test is not about load. */
const PAUSE_MS = 8
const CONFIG = { actionSelect: 'fault', actionDuration: '300', suspendDuration: '300', factor: '1' }

interface Setting {
  readonly gateway: RunningGateway
  readonly a: UnreliableBackend
  readonly b: UnreliableBackend
}

async function begin(algorithm: string): Promise<Setting> {
  const [a, b] = await Promise.all([UnreliableBackend.start('a'), UnreliableBackend.start('b')])
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

/** Clients with one request after the other, each on its own connection, until stopped. */
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
      const { status, body } = await takeResponse(peer)
      this.answers.push(status === 200 ? body : `${status} ${body}`)
      await sleep(PAUSE_MS)
    }
    peer.destroy()
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#clients)
  }

  /** Waits for so many further responses of this backend. */
  async further(count: number, body: string): Promise<void> {
    let at = this.answers.length
    let found = 0
    await eventually(`${count} answers of ${body}`, () => {
      for (; at < this.answers.length; at++) if (this.answers[at] === body) found++
      return found >= count
    })
  }
}

/** [failure, how a backend fails and recovers while the load goes on]. */
const ILLNESSES: readonly (readonly [string, (sick: UnreliableBackend, load: Load) => Promise<void>])[] = [
  [
    'dies',
    async (sick, load) => {
      await sick.stop()
      await load.further(300, 'b')
      await sick.listen()
    },
  ],
  [
    'hangs',
    async (sick, load) => {
      sick.behaviour = 'hangs'
      await eventually('requests that hang', () => sick.held > 0)
      await load.further(300, 'b')
      sick.behaviour = 'responds'
    },
  ],
  [
    'closes without an answer',
    async (sick, load) => {
      sick.behaviour = 'closes'
      await load.further(300, 'b')
      sick.behaviour = 'responds'
    },
  ],
  [
    'flaps',
    async (sick, load) => {
      for (let i = 0; i < 5; i++) {
        await sick.stop()
        await load.further(50, 'b')
        await sick.listen()
        await load.further(10, 'a')
      }
    },
  ],
]

for (const algorithm of ['round_robin', 'least_pending']) {
  let begun: Promise<Setting> | undefined
  after(async () => {
    const { a, b } = await begun!
    await a.stop()
    await b.stop()
  })

  for (const [what, fallIll] of ILLNESSES) {
    test(`${algorithm}: a backend that ${what} under load fails no request, and comes back`, async () => {
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
