/** A bug of ours costs the connection that it meets, never the thread with all the others. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Handler } from '../../src/exchange/contract.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const backend = await AnsweringBackend.listen()
const broken: Handler = {
  name: 'broken',
  request(exchange) {
    if (exchange.requestTarget.includes('throw')) throw new Error('a planted bug')
    if (exchange.requestTarget.includes('spoil')) {
      // The reply will meet a client side that cannot take it.
      exchange.downstream.replyPart = () => {
        throw new Error('a planted bug')
      }
    }
    return undefined
  },
}
const gateway = await startGateway([{ context: '/echo', port: backend.port }], {}, null, [broken])
after(() => {
  gateway.stop()
  backend.close()
})

const OUTCOMES = [
  ['throw', '500'],
  ['spoil', 'RST'],
] as const
for (const [path, outcome] of OUTCOMES) {
  test(`a request that meets a bug (${path}) ends in ${outcome} and is logged; others are served`, async () => {
    const other = await connectPeer(gateway.port)
    other.send('GET /echo/fine HTTP/1.1\r\nHost: h.test\r\n\r\n')
    await other.untilText('\r\n\r\nok')
    other.take()
    const client = await connectPeer(gateway.port)
    client.send(`GET /echo/${path} HTTP/1.1\r\nHost: h.test\r\n\r\n`)
    const before = gateway.reports.length
    if (outcome === 'RST') assert.equal(await client.untilEnd(), 'RST')
    else await client.untilText('"code":500')
    const bug = gateway.reports.slice(before - 1).find(({ event }) => event === 'bug')
    assert.match(String(bug?.fields.CAUSE_OF_ERROR), /a planted bug/)
    other.send('GET /echo/still HTTP/1.1\r\nHost: h.test\r\n\r\n')
    await other.untilText('\r\n\r\nok')
    other.destroy()
    client.destroy()
  })
}
