/** Condition groups of advanced policies: every type, plain and inverted, and which group counts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Condition } from '../../src/throttle/policy.ts'
import { advanced, conditional, openApi, quota, securedApi, ThrottledGateway } from '../harness/throttled-gateway.ts'

const ALL = { header: true, query: true, claim: true }
const NONE = { header: false, query: false, claim: false }

const apis = (port: number) => [openApi(port, 'open', { tier: 'Tier' }), securedApi(port, 'tokens', { tier: 'Tier' })]
const running = await ThrottledGateway.start(apis, { conditions: ALL }, { http: { trusted_proxies: ['127.0.0.1'] } })
const without = await ThrottledGateway.start(apis, { conditions: NONE })
running.token('gold', {}, 'tokens')
const silver = running.control.token('gold', { plan: 'silver' })
const golden = running.control.token('gold', { plan: 'gold' })

const from = (address: string) => `X-Forwarded-For: ${address}\r\n`
const bearer = (token: string) => `Authorization: Bearer ${token}\r\n`

interface Case {
  readonly name: string
  readonly condition: Condition
  /** Target and fields of a request for which the condition holds, and of one for which it does not. */
  readonly holds: readonly [target: string, fields: string]
  readonly fails: readonly [target: string, fields: string]
}

const CASES: readonly Case[] = [
  {
    name: 'an address',
    condition: { type: 'address', inverted: false, address: '192.0.2.7' },
    holds: ['/open/x', from('192.0.2.7')],
    fails: ['/open/x', from('192.0.2.8')],
  },
  {
    name: 'an IPv6 address in another spelling',
    condition: { type: 'address', inverted: false, address: '2001:db8::1' },
    holds: ['/open/x', from('2001:DB8:0:0:0:0:0:1')],
    fails: ['/open/x', from('2001:db8::2')],
  },
  {
    name: 'a range of addresses',
    condition: { type: 'range', inverted: false, from: '192.0.2.10', to: '192.0.2.20' },
    holds: ['/open/x', from('192.0.2.20')],
    fails: ['/open/x', from('192.0.2.21')],
  },
  {
    name: 'a field',
    condition: { type: 'header', inverted: false, name: 'X-Kind', pattern: 'b.*' },
    holds: ['/open/x', 'x-kind: batch\r\n'],
    fails: ['/open/x', 'x-kind: a batch\r\n'],
  },
  {
    name: 'a missing field',
    condition: { type: 'header', inverted: false, name: 'X-Kind', pattern: '.*' },
    holds: ['/open/x', 'X-KIND: \r\n'],
    fails: ['/open/x', ''],
  },
  {
    name: 'a query parameter, decoded',
    condition: { type: 'query', inverted: false, name: 'mode', pattern: 'a b|c' },
    holds: ['/open/x?q=1&mode=a%20b', ''],
    fails: ['/open/x?mode=a', ''],
  },
  {
    name: 'a claim of the token',
    condition: { type: 'claim', inverted: false, name: 'plan', pattern: 'gold' },
    holds: ['/tokens/x', bearer(golden)],
    fails: ['/tokens/x', bearer(silver)],
  },
]

let hours = 0

for (const { name, condition, holds, fails } of CASES) {
  for (const inverted of [false, true]) {
    const [limited, free] = inverted ? [fails, holds] : [holds, fails]
    test(`${name}${inverted ? ', inverted' : ''}: limits requests for which it holds, and no other`, async () => {
      running.clock.ms += ++hours * 3_600_000
      running.apply([conditional('Tier', { ...condition, inverted })])
      assert.deepEqual(await running.codes(2, free[0], '', free[1]), [0, 0])
      assert.deepEqual(await running.codes(2, limited[0], '', limited[1]), [0, 900800])
      assert.deepEqual(await running.codes(1, free[0], '', free[1]), [0])
    })
  }
}

test('all conditions of a group hold together; the first group counts, the default the rest', async () => {
  running.clock.ms += ++hours * 3_600_000
  const address = { type: 'address', inverted: false, address: '192.0.2.7' } as const
  const kind = { type: 'header', inverted: false, name: 'X-Kind', pattern: 'batch' } as const
  const groups = [
    { description: 'both', conditions: [address, kind], quota: quota(1) },
    { description: 'one', conditions: [kind], quota: quota(2) },
  ]
  running.apply([advanced('Tier', quota(3), { groups })])
  const batch = 'X-Kind: batch\r\n'
  assert.deepEqual(await running.codes(2, '/open/x', '', batch + from('192.0.2.7')), [0, 900800])
  assert.deepEqual(await running.codes(3, '/open/x', '', batch), [0, 0, 900800])
  assert.deepEqual(await running.codes(4, '/open/x', '', from('192.0.2.7')), [0, 0, 0, 900800])
})

for (const { name, condition, holds } of CASES.filter(({ condition: { type } }) =>
  ['header', 'query'].includes(type),
)) {
  test(`${name}: without its key the group does not apply`, async () => {
    without.apply([conditional('Tier', condition)])
    assert.deepEqual(await without.codes(3, holds[0], '', holds[1]), [0, 0, 0])
  })
}

test('a pattern that makes other engines backtrack is matched in linear time', async () => {
  running.clock.ms += ++hours * 3_600_000
  running.apply([conditional('Tier', { type: 'header', inverted: false, name: 'X-Kind', pattern: '(a*)*b' })])
  assert.deepEqual(await running.codes(2, '/open/x', '', `X-Kind: ${'a'.repeat(4000)}\r\n`), [0, 0])
})
