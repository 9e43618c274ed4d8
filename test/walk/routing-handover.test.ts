/** A canonical path stays with its request: to the next endpoint, and past a handler that waits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Handler } from '../../src/exchange/contract.ts'
import { takeAnswer } from '../harness/answers.ts'
import { Patient, startEndpoints } from '../harness/endpoints.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

interface Case {
  readonly target: string
  readonly gets: string
}

const CASES: readonly Case[] = [
  { target: '/t/a/../%62/.?q=/../%zz', gets: '/b/?q=/../%zz' },
  { target: '/t/"x"', gets: '/%22x%22' },
  { target: '/t//?', gets: '/?' },
  { target: '/t/./..//t?x', gets: '/?x' },
  { target: 'http://a//t/%7E', gets: '/~' },
  { target: '/t/as%20it%2Bis/', gets: '/as%20it%2Bis/' },
]

async function ask(port: number, target: string): Promise<number> {
  const client = await connectPeer(port)
  client.send(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`)
  const { status } = await takeAnswer(client)
  client.destroy()
  return status
}

/** Method and path of all, sorted. */
function asked({ requests }: Patient): readonly string[] {
  return requests.map(request => request.split(' ').slice(0, 2).join(' ')).sort()
}

for (const { target, gets } of CASES) {
  test(`handed over to the next endpoint: ${target}`, async t => {
    const [dead, backend] = [await Patient.start('dead'), await Patient.start('b')]
    const gateway = await startEndpoints({ kind: 'failover', ports: [dead.port, backend.port] })
    t.after(async () => {
      gateway.stop()
      await backend.die()
    })
    await dead.die()
    assert.equal(await ask(gateway.port, target), 200)
    assert.deepEqual(asked(backend), [`GET ${gets}`])
  })

  test(`after a handler that waited: ${target}`, async t => {
    const backend = await Patient.start('b')
    const waits: Handler = {
      name: 'waits',
      async request() {
        await turn()
        return undefined
      },
    }
    const gateway = await startGateway([{ context: '/t', port: backend.port }], {}, null, [waits])
    t.after(async () => {
      gateway.stop()
      await backend.die()
    })
    // Another request takes its way while this one waits.
    const statuses = await Promise.all([ask(gateway.port, target), ask(gateway.port, '/t/other/../%6Fne')])
    assert.deepEqual(statuses, [200, 200])
    assert.deepEqual(asked(backend), [`GET ${gets}`, 'GET /one'].toSorted())
  })
}
