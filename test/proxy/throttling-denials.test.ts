/** Deny policies: every type, in force with the next request, before authentication where they need no caller. */
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import type { DenyPolicy } from '../../src/throttle/policy.ts'
import { eventually, connectPeer, ScriptedBackend } from '../harness/peers.ts'
import { OPEN_CORS } from '../harness/filter-chain.ts'
import { switchingProtocols, takeHead, upgradeRequest } from '../harness/tunnels.ts'
import { denial, openApi, securedApi, ThrottledGateway } from '../harness/throttled-gateway.ts'

const scripted = await ScriptedBackend.listen()
const running = await ThrottledGateway.start(
  port => [
    securedApi(port, 'tokens'),
    securedApi(port, 'other'),
    openApi(port, 'open', { cors: OPEN_CORS }),
    openApi(scripted.port, 'echo'),
    securedApi(scripted.port, 'talk'),
  ],
  {},
  { http: { trusted_proxies: ['127.0.0.1'] } },
)
after(() => scripted.close())
const token = running.token('shop', {}, 'tokens', 'other', 'talk')

const from = (address: string) => `X-Forwarded-For: ${address}\r\n`

beforeEach(() => running.deny())

interface Case {
  readonly name: string
  readonly policy: DenyPolicy
  /** Target, application and fields of a request that is denied, and of one that is not. */
  readonly denied: readonly [target: string, caller: string, fields: string]
  readonly passes: readonly [target: string, caller: string, fields: string]
}

const CASES: readonly Case[] = [
  {
    name: 'an API',
    policy: denial('API', '/tokens'),
    denied: ['/tokens/x', 'shop', ''],
    passes: ['/other/x', 'shop', ''],
  },
  {
    name: 'an API, without credentials',
    policy: denial('API', '/open'),
    denied: ['/open/x', '', ''],
    passes: ['/other/x', 'shop', ''],
  },
  {
    name: 'an application',
    policy: denial('APPLICATION', 'owner:shop'),
    denied: ['/tokens/x', 'shop', ''],
    passes: ['/open/x', '', ''],
  },
  {
    name: 'a user',
    policy: denial('USER', 'alice'),
    denied: ['/tokens/x', 'shop', ''],
    passes: ['/open/x', '', ''],
  },
  {
    name: 'a subscription',
    policy: denial('SUBSCRIPTION', '/tokens:owner:shop'),
    denied: ['/tokens/x', 'shop', ''],
    passes: ['/other/x', 'shop', ''],
  },
  {
    name: 'an address',
    policy: denial('IP', '192.0.2.7'),
    denied: ['/open/x', '', from('192.0.2.7')],
    passes: ['/open/x', '', from('192.0.2.8')],
  },
  {
    name: 'a network',
    policy: denial('IP', '192.0.2.0/24'),
    denied: ['/tokens/x', 'shop', from('192.0.2.99')],
    passes: ['/tokens/x', 'shop', from('198.51.100.1')],
  },
  {
    name: 'every address but one',
    policy: denial('IP', '192.0.2.7', { inverted: true }),
    denied: ['/open/x', '', from('192.0.2.8')],
    passes: ['/open/x', '', from('192.0.2.7')],
  },
  {
    name: 'a range of addresses',
    policy: denial('IPRANGE', '2001:db8::1-2001:db8::ff'),
    denied: ['/open/x', '', from('2001:db8::80')],
    passes: ['/open/x', '', from('2001:db8::100')],
  },
]

for (const { name, policy, denied, passes } of CASES) {
  test(`a deny policy of ${name} refuses with 900805 from the next request on, until it is switched off`, async () => {
    const [target, caller, fields] = denied
    assert.equal((await running.request(target, caller, fields)).code, 0)
    running.deny(policy)
    const refused = await running.request(target, caller, fields)
    assert.deepEqual([refused.status, refused.code], [429, 900805])
    const { fault } = JSON.parse(refused.body)
    assert.equal(fault.message, 'Message blocked')
    assert.equal(fault.nextAccessTime, undefined)
    assert.equal((await running.request(...passes)).code, 0)
    running.deny({ ...policy, enabled: false })
    assert.equal((await running.request(target, caller, fields)).code, 0)
  })
}

test('a denied address is refused before its credentials are read', async () => {
  running.deny(denial('IP', '192.0.2.7'))
  assert.equal((await running.request('/tokens/x', '', from('192.0.2.7'))).code, 900805)
  assert.equal((await running.request('/tokens/x', '', from('192.0.2.8'))).code, 900902)
})

for (const [denied, seen] of [
  ['192.0.2.7', '::ffff:192.0.2.7'],
  ['192.0.2.7', '::FFFF:C000:207'],
  ['2001:db8::7', '2001:0DB8:0:0:0:0:0:7'],
  ['192.0.2.7', '192.0.2.7:443'],
  ['2001:db8::7', '[2001:db8::7]:443'],
  ['2001:db8::7', '[2001:db8::7]'],
] as const) {
  test(`a deny policy on ${denied} refuses an address that a proxy writes as ${seen}`, async () => {
    running.deny(denial('IP', denied))
    assert.equal((await running.request('/open/x', '', from(seen))).code, 900805)
  })
}

test('the refusal of a denied address has the CORS fields of the API', async () => {
  running.deny(denial('API', '/open'))
  const { code, fields } = await running.request('/open/x', '', 'Origin: https://page.test\r\n')
  assert.equal(code, 900805)
  assert.deepEqual(fields.get('access-control-allow-origin'), ['*'])
})

test('forwarding fields of a peer that is no trusted proxy name no address', async () => {
  const strict = await ThrottledGateway.start(port => [openApi(port, 'open')])
  strict.deny(denial('IP', '192.0.2.7'))
  assert.equal((await strict.request('/open/x', '', from('192.0.2.7'))).code, 0)
  strict.deny(denial('IP', '127.0.0.1'))
  assert.equal((await strict.request('/open/x', '', from('192.0.2.7'))).code, 900805)
})

for (const policy of [denial('API', '/echo'), denial('IP', '192.0.2.7')]) {
  test(`a deny policy of the type ${policy.type} resets an open tunnel that it names`, async () => {
    const client = await connectPeer(running.gateway.port)
    client.send(upgradeRequest('websocket', 'X-Forwarded-For: 192.0.2.7'))
    const peer = await scripted.next()
    await peer.untilText('\r\n\r\n')
    peer.take()
    peer.send(switchingProtocols())
    await takeHead(client)
    running.deny(policy)
    await eventually('the end of both sides', () => client.ending !== '' && peer.ending !== '')
    assert.deepEqual([client.ending, peer.ending], ['RST', 'RST'])
    const { fields } = running.gateway.reports.findLast(({ event }) => event === 'tunnel ended')!
    assert.equal(fields.CAUSE_OF_ERROR, 'a deny policy refuses the caller (900805)')
  })
}

for (const [type, value] of [
  ['USER', 'alice'],
  ['APPLICATION', 'owner:shop'],
  ['SUBSCRIPTION', '/talk:owner:shop'],
] as const) {
  test(`a deny policy of the type ${type} resets the open tunnel of its caller`, async () => {
    const client = await connectPeer(running.gateway.port)
    const request = upgradeRequest('websocket', `Authorization: Bearer ${token}`)
    client.send(request.replace(/^GET \S+/, 'GET /talk/x'))
    const peer = await scripted.next()
    await peer.untilText('\r\n\r\n')
    peer.send(switchingProtocols())
    await takeHead(client)
    running.deny(denial('USER', 'nobody'))
    running.deny(denial(type, value))
    await eventually('the end of both sides', () => client.ending !== '' && peer.ending !== '')
    assert.deepEqual([client.ending, peer.ending], ['RST', 'RST'])
  })
}
