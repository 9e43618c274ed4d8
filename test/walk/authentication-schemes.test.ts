/** API keys, passwords, resources that ask for nothing, and a handler of the operator's own. */
import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import type { ResourceDefinition } from '../../src/config/api-definition.ts'
import type { Caller } from '../../src/exchange/caller.ts'
import type { Handler } from '../../src/exchange/contract.ts'
import type { AccessPlan } from '../../src/identity/identity-plan.ts'
import type { ValidatorInput } from '../../src/identity/identity.ts'
import { AnsweringBackend } from '../harness/answering-backend.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { ask } from '../harness/chained.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { OWN_ISSUER, ScriptedAuthority } from '../harness/scripted-authority.ts'

const BOTH = 'Application & Application User'

function operation(template: string, scopes: readonly string[] = [], authType: ResourceDefinition['authType'] = BOTH) {
  return { template, verb: '*', authType, tier: 'Unlimited', scopes }
}

const OPERATIONS = [
  operation('/any'),
  operation('/none', [], 'None'),
  operation('/application', [], 'Application'),
  operation('/read', ['read']),
  operation('/write', ['write', 'manage']),
  operation('/free', ['unbound']),
]

const backend = await AnsweringBackend.listen()
const callers: (Caller | null)[] = []
const looks: Handler = {
  name: 'looks',
  request: ({ caller }) => {
    callers.push(caller)
    return undefined
  },
}
/** What the operator's handler was asked, and what it answers next. */
const validated: ValidatorInput[] = []
let validate: (input: ValidatorInput) => unknown = () => ({ allowed: true })

function api(name: string, access: Partial<AccessPlan>): TestApi {
  const whole = { ...NO_ACCESS, subject: `${name}:1.0.0`, schemes: ['oauth2'] as const, ...access }
  return { context: `/${name}`, port: backend.port, unlike: { access: whole, resources: OPERATIONS } }
}

const gateway = await startGateway(
  [
    api('keys', { schemes: ['api_key'] }),
    api('basic', { schemes: ['basic'], scopeRoles: { read: ['clerk'], write: ['boss'], manage: ['chief'] } }),
    api('all', { schemes: ['oauth2', 'basic', 'api_key'] }),
    api('tokens', {}),
  ],
  {},
  null,
  [looks],
  {
    isChained: true,
    identityChanges: { issuers: [OWN_ISSUER] },
    ownValidator: input => {
      validated.push(input)
      return validate(input)
    },
  },
)
const authority = new ScriptedAuthority(gateway.identity)
for (const name of ['keys', 'all', 'tokens']) authority.subscribe('shop', `${name}:1.0.0`)
after(() => {
  gateway.stop()
  backend.close()
})
beforeEach(() => {
  validate = () => ({ allowed: true })
  authority.answers = {}
  authority.asked.length = 0
})

/** Code, or 0; what the backend saw. */
async function call(target: string, fields = '') {
  const client = await connectPeer(gateway.port)
  const before = backend.requests.length
  const answer = await ask(client, `GET ${target}`, fields)
  client.destroy()
  const code = answer.body === 'ok' ? 0 : (JSON.parse(answer.body).fault.code as number)
  return { code, seen: backend.requests.slice(before).at(0), caller: callers.at(-1) ?? null }
}

async function codeOf(target: string, fields = ''): Promise<number> {
  return (await call(target, fields)).code
}

function basic(user: string, password: string): string {
  return `Authorization: Basic ${Buffer.from(`${user}:${password}`).toString('base64')}\r\n`
}

const key = authority.apiKey('shop')

describe('API keys', () => {
  test('in a field, which ends here', async () => {
    const { code, seen, caller } = await call('/keys/any', `ApiKey: ${key}\r\nX-Other: 1\r\n`)
    assert.equal(code, 0)
    assert.deepEqual(
      seen!.lines.filter(line => /^(?:apikey|x-other)/i.test(line)),
      ['X-Other: 1'],
    )
    assert.deepEqual([caller?.method, caller?.application?.name, caller?.subscriptionTier], ['api_key', 'shop', 'Gold'])
  })

  for (const [query, rest] of [
    [`?apikey=${key}`, ''],
    [`?a=1&apikey=${key}`, '?a=1'],
    [`?apikey=${key}&a=%41&a=2`, '?a=%41&a=2'],
    [`?apikeys=1&apikey=${key}&xapikey=3`, '?apikeys=1&xapikey=3'],
  ]) {
    test(`in the query ${query!.replace(key, 'K')}: the backend gets "${rest}"`, async () => {
      for (const path of ['/keys/any', '/keys/x/../%61ny']) {
        const { code, seen } = await call(`${path}${query}`)
        assert.deepEqual([code, seen?.target], [0, `/any${rest}`])
      }
    })
  }

  test("two of them, an empty one, a stranger's and an access token are 900901", async () => {
    assert.equal(await codeOf('/keys/any', `apikey: ${key}\r\n`.repeat(2)), 900901)
    assert.equal(await codeOf(`/keys/any?apikey=${key}`, `apikey: ${key}\r\n`), 900901)
    assert.equal(await codeOf(`/keys/any?apikey=${key}&apikey=${key}`), 900901)
    assert.equal(await codeOf('/keys/any?apikey='), 900901)
    assert.equal(await codeOf('/keys/any', `apikey: ${key}A\r\n`), 900901)
    assert.equal(await codeOf('/keys/any', `apikey: ${authority.token('shop')}\r\n`), 900901)
    assert.equal(await codeOf('/keys/any'), 900902)
    assert.equal(await codeOf('/keys/any?apikeys=1'), 900902)
  })

  test('an application that is not subscribed is 900908, and scopes are not among what a key has', async () => {
    assert.equal(await codeOf('/keys/any', `apikey: ${authority.apiKey('nobody')}\r\n`), 900908)
    assert.equal(await codeOf('/keys/read', `apikey: ${key}\r\n`), 900910)
    assert.equal(await codeOf('/keys/application', `apikey: ${key}\r\n`), 0)
  })

  test('a key whose type the API has no endpoint for is 900901', async () => {
    assert.equal(await codeOf('/keys/any', `apikey: ${authority.apiKey('shop', { keytype: 'SANDBOX' })}\r\n`), 900901)
  })
})

describe('API keys for certain places', () => {
  for (const [permittedIP, code] of [
    ['127.0.0.1', 0],
    ['10.0.0.1,127.0.0.0/8', 0],
    ['10.0.0.0/8', 900908],
    ['::1,2001:db8::/32', 900908],
    ['nonsense', 900901],
  ] as const) {
    test(`permittedIP ${permittedIP}: ${code}`, async () => {
      assert.equal(await codeOf('/keys/any', `apikey: ${authority.apiKey('shop', { permittedIP })}\r\n`), code)
    })
  }

  for (const [permittedReferer, referer, code] of [
    ['https://a.example/*', 'https://a.example/page', 0],
    ['https://b.example/,*.example/*', 'https://a.example/page', 0],
    ['https://a.example/*', 'https://a.example.evil/page', 900908],
    ['https://a.example/*', '', 900908],
  ] as const) {
    test(`permittedReferer ${permittedReferer} from ${referer || 'nowhere'}: ${code}`, async () => {
      const from = referer === '' ? '' : `Referer: ${referer}\r\n`
      const fields = `apikey: ${authority.apiKey('shop', { permittedReferer })}\r\n${from}`
      assert.equal(await codeOf('/keys/any', fields), code)
      assert.equal(await codeOf('/keys/any', fields), code)
    })
  }

  test("field and parameter are the backend's where an API takes no such keys", async () => {
    const { seen } = await call(`/tokens/none?apikey=1`, 'apikey: 2\r\n')
    assert.equal(seen!.target, '/none?apikey=1')
    assert.ok(seen!.lines.includes('apikey: 2'))
  })
})

describe('users with their passwords', () => {
  const clerk = { name: 'ann', tenant: 'carbon.super', roles: ['clerk'] }

  test('are asked about once, however many requests there are', async () => {
    authority.answers = { password: ({ password }) => (password === 'right' ? clerk : null) }
    const fields = basic('ann', 'right')
    const { passwordHits, passwordMisses } = gateway.metrics().counts
    const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf('/basic/any', fields)))
    assert.deepEqual([...new Set(codes)], [0])
    const { code, seen, caller } = await call('/basic/any', fields)
    assert.equal(code, 0)
    assert.equal(authority.asked.length, 1)
    const { counts } = gateway.metrics()
    assert.ok(counts.passwordHits > passwordHits && counts.passwordMisses > passwordMisses)
    assert.equal(counts.passwordHits - passwordHits + counts.passwordMisses - passwordMisses, 21)
    assert.deepEqual([caller?.method, caller?.user, caller?.application], ['basic', 'ann', null])
    assert.ok(!seen!.lines.some(line => /^authorization/i.test(line)))
  })

  test('that are wrong are 900901, each time asked about anew', async () => {
    authority.answers = { password: () => null }
    const fields = basic('ann', 'wrong')
    assert.deepEqual([await codeOf('/basic/any', fields), await codeOf('/basic/any', fields)], [900901, 900901])
    assert.equal(authority.asked.length, 2)
  })

  test('are asked about with the address of the client, by which guesses are counted', async () => {
    authority.answers = { password: () => null }
    await codeOf('/basic/any', basic('ann', 'from where'))
    assert.partialDeepStrictEqual(authority.asked, [{ kind: 'password', user: 'ann', address: '127.0.0.1' }])
  })

  test('are 900900 where nobody can be asked', async () => {
    assert.equal(await codeOf('/basic/any', basic('ann', 'unknown')), 900900)
    assert.ok(gateway.reports.some(({ event }) => event === 'credentials not checked'))
    assert.ok(!JSON.stringify(gateway.reports).includes('unknown'))
  })

  test("have scopes by their roles; a scope that is bound to no role is everybody's", async () => {
    authority.answers = { password: () => clerk }
    const fields = basic('ann', 'roles')
    const codes = ['/read', '/write', '/free', '/application'].map(path => codeOf(`/basic${path}`, fields))
    assert.deepEqual(await Promise.all(codes), [0, 900910, 0, 900905])
  })

  for (const [name, value] of [
    ['nothing', ''],
    ['no base64', ' a:b'],
    ['spare bits', ' YTpiY2='],
    ['no colon', ` ${Buffer.from('ab').toString('base64')}`],
    ['no name', ` ${Buffer.from(':b').toString('base64')}`],
    ['two words', ' YTpi YTpi'],
    ['too long', ` ${Buffer.from(`a:${'b'.repeat(2000)}`).toString('base64')}`],
  ]) {
    test(`${name} behind Basic is 900901, and nobody is asked`, async () => {
      assert.equal(await codeOf('/basic/any', `Authorization: Basic${value}\r\n`), 900901)
      assert.equal(authority.asked.length, 0)
    })
  }
})

test('of several ways in the first that is taken decides, in the order of the reference platform', async () => {
  authority.answers = { password: () => ({ name: 'ann', tenant: '', roles: [] }) }
  const sent = `apikey: ${key}\r\n`
  assert.equal(
    (await call('/all/any', `Authorization: Bearer ${authority.token('shop')}\r\n`)).caller?.method,
    'oauth2',
  )
  assert.equal((await call('/all/any', basic('ann', 'x'))).caller?.method, 'basic')
  assert.equal((await call('/all/any', sent)).caller?.method, 'api_key')
  assert.equal(await codeOf('/all/any', `Authorization: Bearer ${authority.token('nobody')}\r\n${sent}`), 900908)
})

test('a key that is not looked at ends here too: beside a token, and where nobody is asked', async () => {
  for (const [path, token] of [
    ['/all/any', `Authorization: Bearer ${authority.token('shop')}\r\n`],
    ['/all/none', ''],
  ] as const) {
    const { code, seen } = await call(`${path}?a=1&apikey=${key}`, `apikey: ${key}\r\n${token}`)
    assert.deepEqual([code, seen?.target], [0, `${path.slice(4)}?a=1`])
    assert.deepEqual(
      seen!.lines.filter(line => /^apikey/i.test(line)),
      [],
    )
  }
})

test('whoever is asked for nothing is anonymous, and one for all requests of an address', async () => {
  const { code, caller } = await call('/tokens/none')
  assert.equal(code, 0)
  const { user, subscriptionTier, keyType, application, expiresMs } = caller!
  assert.deepEqual(
    [user, subscriptionTier, keyType, application?.name, expiresMs],
    ['anonymous', 'Unauthenticated', 'PRODUCTION', '127.0.0.1', 0],
  )
  assert.equal((await call('/keys/none')).caller, caller)
})

describe("a handler of the operator's own", () => {
  test('is asked once for a token and an operation, and told what there is to know', async () => {
    validated.length = 0
    const fields = `Authorization: Bearer ${authority.token('shop', { scope: 'read' })}\r\n`
    for (const path of ['/any', '/any', '/read', '/any']) assert.equal(await codeOf(`/tokens${path}`, fields), 0)
    assert.deepEqual(
      validated.map(({ resource }) => resource),
      ['/any', '/read'],
    )
    const { token, api: asked, verb } = validated[0]!
    assert.deepEqual([token.consumerKey, token.scopes, asked.name, verb], ['shop', ['read'], 'tokens', 'GET'])
  })

  for (const [name, answer, code] of [
    ['refuses', { allowed: false }, 900908],
    ['refuses with a code', { allowed: false, code: 900910 }, 900910],
    ['refuses with a code that is none', { allowed: false, code: 200 }, 900908],
    ['answers nothing of use', true, 900911],
  ] as const) {
    test(`${name}: ${code}`, async () => {
      validate = async () => answer
      assert.equal(await codeOf('/tokens/any', `Authorization: Bearer ${authority.token('shop')}\r\n`), code)
    })
  }

  test('that throws is 900900, and is asked again with the next request', async () => {
    const fields = `Authorization: Bearer ${authority.token('shop')}\r\n`
    validate = () => {
      throw new Error('a bug of theirs')
    }
    assert.equal(await codeOf('/tokens/any', fields), 900900)
    validate = () => ({ allowed: true })
    assert.equal(await codeOf('/tokens/any', fields), 0)
  })

  test('is not asked about what is refused anyway', async () => {
    validated.length = 0
    await codeOf('/tokens/read', `Authorization: Bearer ${authority.token('shop')}\r\n`)
    assert.deepEqual(validated, [])
  })
})
