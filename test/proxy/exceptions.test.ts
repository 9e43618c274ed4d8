/** An exception ends only the connection in which it is thrown, never the thread. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { startGateway } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'

const backend = await StrictBackend.listen()
const broken: Filter = {
  name: 'broken',
  request(exchange) {
    if (exchange.requestTarget.includes('throw')) throw new Error('a planted bug')
    if (exchange.requestTarget.includes('spoil')) {
      // The source side will throw when the response body arrives.
      exchange.source.responseBody = () => {
        throw new Error('a planted bug')
      }
    }
    return undefined
  },
}
const gateway = await startGateway([{ context: '/echo', port: backend.port }], { filters: [broken] })
after(() => {
  gateway.stop()
  backend.close()
})

const OUTCOMES = [
  ['throw', 'filter', '500'],
  ['spoil', 'response body', 'RST'],
] as const
for (const [path, where, outcome] of OUTCOMES) {
  test(`an exception in a ${where} ends its request with ${outcome} and is logged, and others are served`, async () => {
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
