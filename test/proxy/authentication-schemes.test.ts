/** Authentication by API keys and passwords, anonymous callers, and the custom validator of the operator. */
import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import type { ResourceDefinition } from '../../src/apis/api-definition.ts'
import type { Caller } from '../../src/proxy/exchange/caller.ts'
import type { Filter } from '../../src/proxy/exchange/contract.ts'
import type { AccessPlan } from '../../src/auth/auth-plan.ts'
import type { CustomValidatorInput } from '../../src/auth/custom-validator.ts'
import { StrictBackend } from '../harness/strict-backend.ts'
import { NO_ACCESS } from '../harness/api-plan.ts'
import { sendRequest } from '../harness/filter-chain.ts'
import { startGateway, type TestApi } from '../harness/gateway.ts'
import { connectPeer } from '../harness/peers.ts'
import { OWN_ISSUER, ScriptedControl } from '../harness/scripted-control.ts'

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
  operation('/user', [], 'Application User'),
]

const backend = await StrictBackend.listen()
const callers: (Caller | null)[] = []
const recordCaller: Filter = {
  name: 'record-caller',
  request: ({ caller }) => {
    callers.push(caller)
    return undefined
  },
}
/** Inputs of the custom validator, and its next result. */
const validated: CustomValidatorInput[] = []
let validate: (input: CustomValidatorInput) => unknown = ({ builtIn }) => builtIn

function api(name: string, access: Partial<AccessPlan>): TestApi {
  const whole = { ...NO_ACCESS, api: `${name}:1.0.0`, schemes: ['oauth2'] as const, ...access }
  return { context: `/${name}`, port: backend.port, overrides: { access: whole, resources: OPERATIONS } }
}

const gateway = await startGateway(
  [
    api('keys', { schemes: ['api_key'] }),
    api('basic', { schemes: ['basic'], scopeRoles: { read: ['clerk'], write: ['boss'], manage: ['chief'] } }),
    api('all', { schemes: ['oauth2', 'basic', 'api_key'] }),
    api('tokens', {}),
  ],
  {
    filters: [recordCaller],
    hasFilterChain: true,
    authChanges: { issuers: [OWN_ISSUER] },
    customValidator: input => {
      validated.push(input)
      return validate(input)
    },
  },
)
const control = new ScriptedControl(gateway.authState)
for (const name of ['keys', 'all', 'tokens']) control.subscribe('shop', `${name}:1.0.0`)
after(() => {
  gateway.stop()
  backend.close()
})
beforeEach(() => {
  validate = ({ builtIn }) => builtIn
  control.handlers = {}
  control.calls.length = 0
})

/** Fault code (0 for a response of the backend), the forwarded request, and the caller. */
async function call(target: string, fields = '') {
  const client = await connectPeer(gateway.port)
  const before = backend.requests.length
  const response = await sendRequest(client, `GET ${target}`, fields)
  client.destroy()
  const code = response.body === 'ok' ? 0 : (JSON.parse(response.body).fault.code as number)
  return { code, forwarded: backend.requests.slice(before).at(0), caller: callers.at(-1) ?? null }
}

async function codeOf(target: string, fields = ''): Promise<number> {
  return (await call(target, fields)).code
}

function basic(user: string, password: string): string {
  return `Authorization: Basic ${Buffer.from(`${user}:${password}`).toString('base64')}\r\n`
}

const key = control.apiKey('shop')

describe('API keys', () => {
  test('an API key in a field is accepted and stripped', async () => {
    const { code, forwarded, caller } = await call('/keys/any', `ApiKey: ${key}\r\nX-Other: 1\r\n`)
    assert.equal(code, 0)
    assert.deepEqual(
      forwarded!.lines.filter(line => /^(?:apikey|x-other)/i.test(line)),
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
    test(`an API key in the query ${query!.replace(key, 'K')} is accepted and stripped to "${rest}"`, async () => {
      for (const path of ['/keys/any', '/keys/x/../%61ny']) {
        const { code, forwarded } = await call(`${path}${query}`)
        assert.deepEqual([code, forwarded?.target], [0, `/any${rest}`])
      }
    })
  }

  test('repeated, empty and forged API keys get 900901, a missing API key gets 900902', async () => {
    assert.equal(await codeOf('/keys/any', `apikey: ${key}\r\n`.repeat(2)), 900901)
    assert.equal(await codeOf(`/keys/any?apikey=${key}`, `apikey: ${key}\r\n`), 900901)
    assert.equal(await codeOf(`/keys/any?apikey=${key}&apikey=${key}`), 900901)
    assert.equal(await codeOf('/keys/any?apikey='), 900901)
    assert.equal(await codeOf('/keys/any', `apikey: ${key}A\r\n`), 900901)
    assert.equal(await codeOf('/keys/any', `apikey: ${control.token('shop')}\r\n`), 900901)
    assert.equal(await codeOf('/keys/any'), 900902)
    assert.equal(await codeOf('/keys/any?apikeys=1'), 900902)
  })

  test('an API key without a subscription gets 900908, and an API key has no scopes', async () => {
    assert.equal(await codeOf('/keys/any', `apikey: ${control.apiKey('unsubscribed')}\r\n`), 900908)
    assert.equal(await codeOf('/keys/read', `apikey: ${key}\r\n`), 900910)
    assert.equal(await codeOf('/keys/application', `apikey: ${key}\r\n`), 0)
  })

  test('an API key of a type without endpoints gets 900901', async () => {
    assert.equal(await codeOf('/keys/any', `apikey: ${control.apiKey('shop', { keytype: 'SANDBOX' })}\r\n`), 900901)
  })
})

describe('restricted API keys', () => {
  for (const [permittedIP, code] of [
    ['127.0.0.1', 0],
    ['10.0.0.1,127.0.0.0/8', 0],
    ['10.0.0.0/8', 900908],
    ['::1,2001:db8::/32', 900908],
    ['nonsense', 900901],
  ] as const) {
    test(`permittedIP ${permittedIP} for 127.0.0.1 ${code === 0 ? 'is served' : `gets ${code}`}`, async () => {
      assert.equal(await codeOf('/keys/any', `apikey: ${control.apiKey('shop', { permittedIP })}\r\n`), code)
    })
  }

  for (const [permittedReferer, referer, code] of [
    ['https://a.example/*', 'https://a.example/page', 0],
    ['https://b.example/,*.example/*', 'https://a.example/page', 0],
    ['https://a.example/*', 'https://a.example.evil/page', 900908],
    ['https://a.example/*', '', 900908],
  ] as const) {
    const result = code === 0 ? 'is served' : `gets ${code}`
    test(`permittedReferer ${permittedReferer} for ${referer || 'no Referer'} ${result}`, async () => {
      const from = referer === '' ? '' : `Referer: ${referer}\r\n`
      const fields = `apikey: ${control.apiKey('shop', { permittedReferer })}\r\n${from}`
      assert.equal(await codeOf('/keys/any', fields), code)
      assert.equal(await codeOf('/keys/any', fields), code)
    })
  }

  test('the field and the parameter apikey are forwarded by an API without API keys', async () => {
    const { forwarded } = await call(`/tokens/none?apikey=1`, 'apikey: 2\r\n')
    assert.equal(forwarded!.target, '/none?apikey=1')
    assert.ok(forwarded!.lines.includes('apikey: 2'))
  })
})

describe('passwords', () => {
  const clerk = { name: 'ann', tenant: 'carbon.super', roles: ['clerk'] }

  test('concurrent requests with one password cause one validation', async () => {
    control.handlers = { password: ({ password }) => (password === 'right' ? clerk : null) }
    const fields = basic('ann', 'right')
    const { passwordHits, passwordMisses } = gateway.metrics().counts
    const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf('/basic/any', fields)))
    assert.deepEqual([...new Set(codes)], [0])
    const { code, forwarded, caller } = await call('/basic/any', fields)
    assert.equal(code, 0)
    assert.equal(control.calls.length, 1)
    const { counts } = gateway.metrics()
    assert.ok(counts.passwordHits > passwordHits && counts.passwordMisses > passwordMisses)
    assert.equal(counts.passwordHits - passwordHits + counts.passwordMisses - passwordMisses, 21)
    assert.deepEqual([caller?.method, caller?.user, caller?.application], ['basic', 'ann', null])
    assert.ok(!forwarded!.lines.some(line => /^authorization/i.test(line)))
  })

  test('a wrong password gets 900901 and is validated again with each request', async () => {
    control.handlers = { password: () => null }
    const fields = basic('ann', 'wrong')
    assert.deepEqual([await codeOf('/basic/any', fields), await codeOf('/basic/any', fields)], [900901, 900901])
    assert.equal(control.calls.length, 2)
  })

  test('the validation of a password has the client address, by which failed attempts are counted', async () => {
    control.handlers = { password: () => null }
    await codeOf('/basic/any', basic('ann', 'from where'))
    assert.partialDeepStrictEqual(control.calls, [{ kind: 'password', user: 'ann', address: '127.0.0.1' }])
  })

  test('a password that cannot be validated gets 900900', async () => {
    assert.equal(await codeOf('/basic/any', basic('ann', 'unknown')), 900900)
    assert.ok(gateway.reports.some(({ event }) => event === 'credentials not checked'))
    assert.ok(!JSON.stringify(gateway.reports).includes('unknown'))
  })

  test('a user has the scopes of the roles; a scope without roles is granted to every user', async () => {
    control.handlers = { password: () => clerk }
    const fields = basic('ann', 'roles')
    const codes = ['/read', '/write', '/free', '/application'].map(path => codeOf(`/basic${path}`, fields))
    assert.deepEqual(await Promise.all(codes), [0, 900910, 0, 900905])
  })

  for (const [name, value] of [
    ['no credentials', ''],
    ['invalid base64', ' a:b'],
    ['base64 with spare bits', ' YTpiY2='],
    ['credentials without a colon', ` ${Buffer.from('ab').toString('base64')}`],
    ['credentials without a user name', ` ${Buffer.from(':b').toString('base64')}`],
    ['two words', ' YTpi YTpi'],
    ['credentials over the limit', ` ${Buffer.from(`a:${'b'.repeat(2000)}`).toString('base64')}`],
  ]) {
    test(`RFC 7617 2: Basic with ${name} gets 900901 without a validation`, async () => {
      assert.equal(await codeOf('/basic/any', `Authorization: Basic${value}\r\n`), 900901)
      assert.equal(control.calls.length, 0)
    })
  }
})

test('the first scheme with credentials decides, in the order of the reference platform', async () => {
  control.handlers = { password: () => ({ name: 'ann', tenant: '', roles: [] }) }
  const apiKeyField = `apikey: ${key}\r\n`
  assert.equal((await call('/all/any', `Authorization: Bearer ${control.token('shop')}\r\n`)).caller?.method, 'oauth2')
  assert.equal((await call('/all/any', basic('ann', 'x'))).caller?.method, 'basic')
  assert.equal((await call('/all/any', apiKeyField)).caller?.method, 'api_key')
  assert.equal(
    await codeOf('/all/any', `Authorization: Bearer ${control.token('unsubscribed')}\r\n${apiKeyField}`),
    900908,
  )
})

test('an API key that is not validated is stripped as well', async () => {
  for (const [path, token] of [
    ['/all/any', `Authorization: Bearer ${control.token('shop')}\r\n`],
    ['/all/none', ''],
  ] as const) {
    const { code, forwarded } = await call(`${path}?a=1&apikey=${key}`, `apikey: ${key}\r\n${token}`)
    assert.deepEqual([code, forwarded?.target], [0, `${path.slice(4)}?a=1`])
    assert.deepEqual(
      forwarded!.lines.filter(line => /^apikey/i.test(line)),
      [],
    )
  }
})

test('a request without required credentials has an anonymous caller, one for each client address', async () => {
  const { code, caller } = await call('/tokens/none')
  assert.equal(code, 0)
  const { user, subscriptionTier, keyType, application, expiresMs } = caller!
  assert.deepEqual(
    [user, subscriptionTier, keyType, application?.name, expiresMs],
    ['anonymous', 'Unauthenticated', 'PRODUCTION', '127.0.0.1', 0],
  )
  assert.equal((await call('/keys/none')).caller, caller)
})

describe('custom validator', () => {
  test('the custom validator is called once for a token and an operation, with both', async () => {
    validated.length = 0
    const fields = `Authorization: Bearer ${control.token('shop', { scope: 'read' })}\r\n`
    for (const path of ['/any', '/any', '/read', '/any']) assert.equal(await codeOf(`/tokens${path}`, fields), 0)
    assert.deepEqual(
      validated.map(({ resource }) => resource),
      ['/any', '/read'],
    )
    const { token, api: validatedApi, verb } = validated[0]!
    assert.deepEqual([token.consumerKey, token.scopes, validatedApi.name, verb], ['shop', ['read'], 'tokens', 'GET'])
  })

  for (const [name, result, code] of [
    ['a refusal', { allowed: false }, 900908],
    ['a refusal with a code', { allowed: false, code: 900910 }, 900910],
    ['a refusal with an invalid code', { allowed: false, code: 200 }, 900908],
    ['an invalid result', true, 900911],
  ] as const) {
    test(`${name} of the custom validator gets ${code}`, async () => {
      validate = async () => result
      assert.equal(await codeOf('/tokens/any', `Authorization: Bearer ${control.token('shop')}\r\n`), code)
    })
  }

  test('a custom validator that throws causes 900900 and is called again with the next request', async () => {
    const fields = `Authorization: Bearer ${control.token('shop')}\r\n`
    validate = () => {
      throw new Error('a bug of the operator')
    }
    assert.equal(await codeOf('/tokens/any', fields), 900900)
    validate = () => ({ allowed: true })
    assert.equal(await codeOf('/tokens/any', fields), 0)
  })

  for (const [name, consumerKey, path, code] of [
    ['a token without the scope', 'shop', '/read', 900910],
    ['a token of an application on a resource for users', 'shop', '/user', 900905],
    ['a client without a subscription', 'unknown', '/any', 900908],
  ] as const) {
    test(`the custom validator overrides the built-in check: ${name}`, async () => {
      const fields = `Authorization: Bearer ${control.token(consumerKey, { aut: 'APPLICATION' })}\r\n`
      validated.length = 0
      assert.equal(await codeOf(`/tokens${path}`, fields), code)
      assert.deepEqual(validated[0]?.builtIn, { allowed: false, code })
      validate = () => ({ allowed: true })
      const other = `Authorization: Bearer ${control.token(consumerKey, { aut: 'APPLICATION' })}\r\n`
      assert.equal(await codeOf(`/tokens${path}`, other), 0)
      validate = () => ({ allowed: false })
      const third = `Authorization: Bearer ${control.token(consumerKey, { aut: 'APPLICATION' })}\r\n`
      assert.equal(await codeOf(`/tokens${path}`, third), code)
    })
  }

  test('a client that only the custom validator admits is a caller without an application', async () => {
    validate = () => ({ allowed: true })
    const { code, caller } = await call('/tokens/any', `Authorization: Bearer ${control.token('unknown')}\r\n`)
    assert.equal(code, 0)
    const { application, keyType, subscriptionTier, consumerKey } = caller!
    assert.deepEqual(
      [application, keyType, subscriptionTier, consumerKey],
      [null, 'PRODUCTION', 'Unauthenticated', 'unknown'],
    )
  })

  test('the custom validator is not called for a forged, expired or missing token', async () => {
    validate = () => ({ allowed: true })
    validated.length = 0
    const good = control.token('shop')
    const forged = `${good.slice(0, -8)}AAAAAAAA`
    assert.equal(await codeOf('/tokens/any', `Authorization: Bearer ${forged}\r\n`), 900901)
    const past = Math.floor(Date.now() / 1000) - 60
    assert.equal(
      await codeOf('/tokens/any', `Authorization: Bearer ${control.token('shop', { exp: past })}\r\n`),
      900901,
    )
    assert.equal(await codeOf('/tokens/any'), 900902)
    assert.deepEqual(validated, [])
  })
})
