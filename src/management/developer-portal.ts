/** What developers do: applications with their keys and subscriptions, and the APIs that they may subscribe to. */
import type { Context } from 'hono'
import { readNetwork } from '../config/cidr.ts'
import { Applications, type NewKeys, UNLIMITED } from './applications.ts'
import type { Callers, ManagementCaller } from './callers.ts'
import { group, list, nameText, oneOf, optional, PAGE, readBody, readQuery, text, texts, whole } from './fields.ts'
import { paged } from './names.ts'
import { invalid } from './problem.ts'
import { created, ResourceApp, segment } from './resource-app.ts'
import type { GivenToken, ManagementRoom } from './room.ts'
import { apiInfoShape, apiShape, applicationShape, keyShape } from './shapes.ts'
import { addSubscriptions } from './subscriptions.ts'

export const DEVELOPER_PORTAL = '/api/am/devportal/v3'

const MANAGE = ['apim:app_manage', 'apim:admin']
const VIEW = ['apim:subscribe', 'apim:app_manage', 'apim:admin']
const API_KEY = ['apim:api_key', 'apim:app_manage', 'apim:admin']
const KEY_TYPE = oneOf('PRODUCTION', 'SANDBOX')
const VALIDITY_S_MAX = 10 * 366 * 86_400
/** An export shows it to portals, and so it may be asked for. */
const VISIBLE_STATES = ['PUBLISHED', 'PROTOTYPED', 'DEPRECATED']

const APPLICATION = {
  name: nameText(100),
  throttlingPolicy: optional(nameText(100), UNLIMITED),
  description: optional(text(512, 0), ''),
  tokenType: optional(oneOf('JWT', 'OPAQUE'), 'JWT'),
  attributes: optional(texts(20, 512), {}),
}
/** Of an answer, which clients send back with what they have changed. */
const APPLICATION_ANSWERED = [
  ...['applicationId', 'status', 'groups', 'subscriptionCount', 'keys', 'subscriptionScopes', 'owner', 'hashEnabled'],
  ...['createdTime', 'updatedTime'],
]

const EXPIRY = 'application_access_token_expiry_time'
const KEYS = {
  grantTypesToBeSupported: optional(list(nameText(100), 20), []),
  callbackUrl: optional(text(4096, 0), ''),
  validityTime: optional(whole(0, VALIDITY_S_MAX), 0),
  additionalProperties: optional(group({ [EXPIRY]: optional(text(20), 'N/A') }), { [EXPIRY]: 'N/A' }),
}
const GENERATE = {
  ...KEYS,
  keyType: KEY_TYPE,
  keyManager: optional(nameText(100), ''),
  scopes: optional(list(nameText(255), 100), ['default']),
}
const KEY_CHANGE = {
  supportedGrantTypes: optional(list(nameText(100), 20), []),
  callbackUrl: KEYS.callbackUrl,
  additionalProperties: KEYS.additionalProperties,
}
const KEY_ANSWERED = [
  ...['keyMappingId', 'keyManager', 'consumerKey', 'keyState', 'keyType', 'mode', 'groupId', 'issuer', 'token'],
]

export class DeveloperPortal {
  readonly #room: () => ManagementRoom
  readonly #applications: Applications
  readonly #resources: ResourceApp

  constructor(room: () => ManagementRoom, callers: Callers) {
    this.#room = room
    this.#applications = new Applications(room)
    this.#resources = new ResourceApp(DEVELOPER_PORTAL, callers, room)
    this.#addApplications()
    this.#addKeys()
    this.#addKeyChanges()
    this.#addApiKeys()
    this.#addApis()
    addSubscriptions(this.#resources, this.#applications, room)
  }

  get app() {
    return this.#resources.app
  }

  async #shape(application: Parameters<typeof applicationShape>[0]) {
    const { subscriptions } = this.#room().registry
    const { total } = await subscriptions.list({ applicationId: application.id }, { offset: 0, limit: 1 })
    return applicationShape(application, total)
  }

  #mine(context: Context, caller: ManagementCaller) {
    return this.#applications.get(segment(context, 'id'), caller)
  }

  #addApplications(): void {
    const on = this.#resources.on.bind(this.#resources)
    on('get', '/applications', VIEW, async (context, caller) => {
      const { query, ...page } = readQuery(context.req.raw, { ...PAGE, query: optional(text(100), '') })
      const { total, applications } = await this.#applications.list(caller, page, query)
      const rows = await Promise.all(applications.map(one => this.#shape(one)))
      return context.json(paged(`${DEVELOPER_PORTAL}/applications`, rows, page, total))
    })
    on('post', '/applications', MANAGE, async (context, caller) => {
      const { throttlingPolicy, ...given } = await readBody(context.req.raw, APPLICATION, APPLICATION_ANSWERED)
      const application = await this.#applications.create({ ...given, tier: throttlingPolicy }, caller)
      return created(context, applicationShape(application, 0), application.id)
    })
    on('get', '/applications/:id', VIEW, async (context, caller) =>
      context.json(await this.#shape(await this.#mine(context, caller))),
    )
    on('put', '/applications/:id', MANAGE, async (context, caller) => {
      const application = await this.#mine(context, caller)
      const { throttlingPolicy, tokenType, ...given } = await readBody(
        context.req.raw,
        APPLICATION,
        APPLICATION_ANSWERED,
      )
      if (tokenType !== application.tokenType) throw invalid('tokenType', 'stays as it was when it was created')
      const change = { ...given, tier: throttlingPolicy }
      return context.json(await this.#shape(await this.#applications.update(application, change, caller)))
    })
    on('delete', '/applications/:id', MANAGE, async (context, caller) => {
      await this.#applications.remove(await this.#mine(context, caller), caller)
      return context.body(null, 200)
    })
  }

  #addKeys(): void {
    const on = this.#resources.on.bind(this.#resources)
    on('post', '/applications/:id/generate-keys', MANAGE, async (context, caller) => {
      const application = await this.#mine(context, caller)
      const given = await readBody(context.req.raw, GENERATE)
      const keys = { ...newKeys(given, given.grantTypesToBeSupported), keyType: given.keyType }
      const { client, secret } = await this.#applications.generate(application, keys, caller)
      const shape = keyShape(client, secret, this.#room())
      if (!client.grants.includes('client_credentials')) return context.json(shape)
      return context.json({ ...shape, token: tokenShape(await this.#room().tokens.issue(client, given.scopes)) })
    })
    on('post', '/applications/:id/map-keys', MANAGE, async (context, caller) => {
      const application = await this.#mine(context, caller)
      const given = await readBody(context.req.raw, {
        ...{ consumerKey: text(255), consumerSecret: text(255), keyType: KEY_TYPE },
        keyManager: optional(nameText(100), ''),
      })
      const { consumerKey, consumerSecret, keyType } = given
      const client = await this.#applications.map(application, consumerKey, consumerSecret, keyType, caller)
      return context.json({ ...keyShape(client, '', this.#room()), mode: 'MAPPED' })
    })
    for (const path of ['/applications/:id/oauth-keys', '/applications/:id/keys']) {
      on('get', path, VIEW, async (context, caller) => {
        const keys = await this.#applications.keys(await this.#mine(context, caller))
        const rows = keys.map(client => keyShape(client, '', this.#room()))
        return context.json({ count: rows.length, list: rows })
      })
    }
  }

  #addKeyChanges(): void {
    const on = this.#resources.on.bind(this.#resources)
    const path = '/applications/:id/oauth-keys/:key'
    const keyOf = async (context: Context, caller: ManagementCaller) =>
      this.#applications.key(await this.#mine(context, caller), segment(context, 'key'))
    on('get', path, VIEW, async (context, caller) =>
      context.json(keyShape(await keyOf(context, caller), '', this.#room())),
    )
    on('put', path, MANAGE, async (context, caller) => {
      const client = await keyOf(context, caller)
      const given = await readBody(context.req.raw, KEY_CHANGE, KEY_ANSWERED)
      const keys = newKeys({ ...given, validityTime: 0 }, given.supportedGrantTypes)
      return context.json(keyShape(await this.#applications.updateKey(client, keys, caller), '', this.#room()))
    })
    on('delete', path, MANAGE, async (context, caller) => {
      await this.#applications.removeKey(await keyOf(context, caller), caller)
      return context.body(null, 200)
    })
    on('post', `${path}/regenerate-secret`, MANAGE, async (context, caller) => {
      const client = await keyOf(context, caller)
      const consumerSecret = await this.#applications.renewSecret(client, caller)
      return context.json({ consumerKey: client.consumerKey, consumerSecret })
    })
    on('post', `${path}/generate-token`, MANAGE, async (context, caller) => {
      const client = await keyOf(context, caller)
      const given = await readBody(context.req.raw, { scopes: optional(list(nameText(255), 100), ['default']) }, [
        'consumerSecret',
        'validityPeriod',
        'revokeToken',
        'additionalProperties',
        'grantType',
      ])
      const grant = 'client_credentials'
      if (![client.grants, this.#room().tokens.grants].every(grants => grants.includes(grant)))
        throw invalid('grantType', `the keys are not for ${grant}, or nobody's are`)
      return context.json(tokenShape(await this.#room().tokens.issue(client, given.scopes)))
    })
  }

  #addApiKeys(): void {
    const on = this.#resources.on.bind(this.#resources)
    const path = '/applications/:id/api-keys/:type'
    const NO_LIMITS = { permittedIP: '', permittedReferer: '' }
    on('post', `${path}/generate`, API_KEY, async (context, caller) => {
      const application = await this.#mine(context, caller)
      const { validityPeriod, additionalProperties } = await readBody(context.req.raw, {
        validityPeriod: optional(whole(-1, VALIDITY_S_MAX), -1),
        additionalProperties: optional(
          group({ permittedIP: optional(text(2048, 0), ''), permittedReferer: optional(text(2048, 0), '') }),
          NO_LIMITS,
        ),
      })
      if (validityPeriod === 0) throw invalid('validityPeriod', 'expected seconds, or -1')
      const permittedIps = wordsIn(additionalProperties.permittedIP)
      const wrong = permittedIps.find(address => readNetwork(address) === '')
      if (wrong !== undefined) throw invalid('permittedIP', 'expected addresses or networks, with commas')
      const keyType = KEY_TYPE.read(segment(context, 'type'))
      if (keyType === undefined) throw invalid('keyType', `expected ${KEY_TYPE.expects}`)
      const terms = { permittedIps, permittedReferers: wordsIn(additionalProperties.permittedReferer) }
      const made = await this.#room().tokens.issueApiKey({ application, keyType, validityS: validityPeriod, ...terms })
      const validityTime = Math.floor((made.expiresMs - this.#room().now()) / 1000)
      this.#room().report('info', 'API key generated', { USER: caller.user, APPLICATION: application.name })
      return context.json({ apikey: made.key, validityTime: validityPeriod === -1 ? -1 : validityTime })
    })
    on('post', `${path}/revoke`, API_KEY, async (context, caller) => {
      const application = await this.#mine(context, caller)
      const { apikey } = await readBody(context.req.raw, { apikey: text(8192) })
      const { registry, tokens, report } = this.#room()
      const known = await tokens.readApiKey(apikey)
      if (known === null || known.applicationId !== application.id)
        throw invalid('apikey', 'is none of the application')
      await registry.tokens.revokeFacts({ key: known.jti, expiresMs: known.expiresMs }, '')
      report('info', 'API key revoked', { USER: caller.user, APPLICATION: application.name })
      return context.body(null, 200)
    })
  }

  #addApis(): void {
    const on = this.#resources.on.bind(this.#resources)
    on('get', '/apis', VIEW, async context => {
      const page = readQuery(context.req.raw, PAGE)
      const all = (await this.#room().apis.list()).filter(({ state }) => VISIBLE_STATES.includes(state))
      const rows = all.slice(page.offset, page.offset + page.limit).map(apiInfoShape)
      return context.json(paged(`${DEVELOPER_PORTAL}/apis`, rows, page, all.length))
    })
    on('get', '/apis/:id', VIEW, async context => {
      return context.json(apiShape(await this.#applications.api(segment(context, 'id'))))
    })
  }
}

function newKeys(
  given: {
    readonly callbackUrl: string
    readonly validityTime: number
    readonly additionalProperties: Readonly<Record<string, string>>
  },
  grants: readonly string[],
): Omit<NewKeys, 'keyType'> {
  const expiry = given.additionalProperties[EXPIRY]!
  const written = expiry === 'N/A' ? 0 : whole(1, VALIDITY_S_MAX).read(expiry)
  if (written === undefined) throw invalid(EXPIRY, 'expected seconds, or N/A')
  return { grants, redirectUris: wordsIn(given.callbackUrl), validityS: written || given.validityTime }
}

function tokenShape({ token, scopes, validityS }: GivenToken) {
  return { accessToken: token, tokenScopes: scopes, validityTime: validityS }
}

function wordsIn(given: string): readonly string[] {
  return given
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
}
