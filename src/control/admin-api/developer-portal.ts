/**
 * REST API of the developer portal: applications with keys and subscriptions, and the APIs that can be subscribed to.
 */
import type { Context } from 'hono'
import { readNetwork } from '../../config/cidr.ts'
import { ApplicationService, type KeyRequest, UNLIMITED } from './application-service.ts'
import { ApprovalService } from './approval-service.ts'
import type { AdminAuthenticator, AdminCaller } from './authentication.ts'
import {
  object,
  list,
  nameText,
  oneOf,
  optional,
  PAGE,
  readBody,
  readQuery,
  scopeText,
  text,
  textMap,
  integer,
} from './request-fields.ts'
import {
  apiInfoRepresentation,
  apiRepresentation,
  applicationRepresentation,
  endpointUrls,
  keyManagerRepresentation,
  keyRepresentation,
  keyRequestRepresentation,
  listRepresentation,
} from './representations.ts'
import { invalidProblem } from './problem.ts'
import { createdResponse, RestApp, pathParameter } from './rest-app.ts'
import type { IssuedAccessToken, AdminServices, ManagedApi, PortalSettings } from './admin-services.ts'
import { addTiers } from './throttling.ts'
import { addSubscriptions } from './subscriptions.ts'

export const DEVELOPER_PORTAL = '/api/am/devportal/v3'

const MANAGE = ['apim:app_manage', 'apim:admin']
const VIEW = ['apim:subscribe', 'apim:app_manage', 'apim:admin']
const API_KEY = ['apim:api_key', 'apim:app_manage', 'apim:admin']
const KEY_TYPE = oneOf('PRODUCTION', 'SANDBOX')
const VALIDITY_S_MAX = 10 * 366 * 86_400
/** Lifecycle states in which the portal lists an API. */
const VISIBLE_STATES = ['PUBLISHED', 'PROTOTYPED', 'DEPRECATED']

const APPLICATION = {
  name: nameText(100),
  throttlingPolicy: optional(nameText(100), UNLIMITED),
  description: optional(text(512, 0), ''),
  tokenType: optional(oneOf('JWT', 'OPAQUE'), 'JWT'),
  attributes: optional(textMap(20, 512), {}),
}
/** Read-only members of a representation, which clients send back with their changes. */
const APPLICATION_READ_ONLY = [
  ...['applicationId', 'status', 'groups', 'subscriptionCount', 'keys', 'subscriptionScopes', 'owner', 'hashEnabled'],
  ...['createdTime', 'updatedTime'],
]

const EXPIRY = 'application_access_token_expiry_time'
const KEYS = {
  grantTypesToBeSupported: optional(list(nameText(100), 20), []),
  callbackUrl: optional(text(4096, 0), ''),
  validityTime: optional(integer(0, VALIDITY_S_MAX), 0),
  additionalProperties: optional(object({ [EXPIRY]: optional(text(20), 'N/A') }), { [EXPIRY]: 'N/A' }),
}
const GENERATE = {
  ...KEYS,
  keyType: KEY_TYPE,
  keyManager: optional(nameText(100), ''),
  scopes: optional(list(scopeText(), 100), ['default']),
}
const KEY_CHANGE = {
  supportedGrantTypes: optional(list(nameText(100), 20), []),
  callbackUrl: KEYS.callbackUrl,
  additionalProperties: KEYS.additionalProperties,
}
const KEY_READ_ONLY = [
  ...['keyMappingId', 'keyManager', 'consumerKey', 'keyState', 'keyType', 'mode', 'groupId', 'issuer', 'token'],
]

export class DeveloperPortal {
  readonly #services: () => AdminServices
  readonly #applications: ApplicationService
  readonly #approvals: ApprovalService
  readonly #resources: RestApp

  constructor(services: () => AdminServices, callers: AdminAuthenticator) {
    this.#services = services
    this.#applications = new ApplicationService(services)
    this.#approvals = new ApprovalService(services)
    this.#resources = new RestApp(DEVELOPER_PORTAL, callers, services)
    this.#addApplications()
    this.#addKeys()
    this.#addKeyChanges()
    this.#addApiKeys()
    this.#addApis()
    this.#addSettings()
    addSubscriptions(this.#resources, this.#applications, services)
  }

  get app() {
    return this.#resources.app
  }

  async #representation(application: Parameters<typeof applicationRepresentation>[0]) {
    const { subscriptions } = this.#services().registry
    const { total } = await subscriptions.list({ applicationId: application.id }, { offset: 0, limit: 1 })
    const statuses = await this.#approvals.statuses([application])
    return applicationRepresentation(application, total, statuses.get(application.id))
  }

  #ownApplication(context: Context, caller: AdminCaller) {
    return this.#applications.get(pathParameter(context, 'id'), caller)
  }

  #addApplications(): void {
    const { route } = this.#resources
    route('get', '/applications', VIEW, async (context, caller) => {
      const { query, ...page } = readQuery(context.req.raw, { ...PAGE, query: optional(text(100), '') })
      const { total, applications } = await this.#applications.list(caller, page, query)
      const rows = await Promise.all(applications.map(one => this.#representation(one)))
      return context.json(listRepresentation(`${DEVELOPER_PORTAL}/applications`, rows, page, total))
    })
    route('post', '/applications', MANAGE, async (context, caller) => {
      const { throttlingPolicy, ...body } = await readBody(context.req.raw, APPLICATION, APPLICATION_READ_ONLY)
      const application = await this.#applications.create({ ...body, tier: throttlingPolicy }, caller)
      return createdResponse(context, await this.#representation(application), application.id)
    })
    route('get', '/applications/:id', VIEW, async (context, caller) =>
      context.json(await this.#representation(await this.#ownApplication(context, caller))),
    )
    route('put', '/applications/:id', MANAGE, async (context, caller) => {
      const application = await this.#ownApplication(context, caller)
      const { throttlingPolicy, tokenType, ...body } = await readBody(
        context.req.raw,
        APPLICATION,
        APPLICATION_READ_ONLY,
      )
      if (tokenType !== application.tokenType) throw invalidProblem('tokenType', 'cannot be changed')
      const change = { ...body, tier: throttlingPolicy }
      return context.json(await this.#representation(await this.#applications.update(application, change, caller)))
    })
    route('delete', '/applications/:id', MANAGE, async (context, caller) => {
      await this.#applications.remove(await this.#ownApplication(context, caller), caller)
      return context.body(null, 200)
    })
  }

  #addKeys(): void {
    const { route } = this.#resources
    route('post', '/applications/:id/generate-keys', MANAGE, async (context, caller) => {
      const application = await this.#ownApplication(context, caller)
      const body = await readBody(context.req.raw, GENERATE)
      const keys = { ...keyRequestOf(body, body.grantTypesToBeSupported), keyType: body.keyType }
      const generated = await this.#applications.generateKeys(application, keys, caller)
      if (generated.request !== null) return context.json(keyRequestRepresentation(generated.request, this.#services()))
      const { client, secret } = generated
      const representation = keyRepresentation(client, secret, this.#services())
      if (!client.grants.includes('client_credentials')) return context.json(representation)
      return context.json({
        ...representation,
        token: tokenRepresentation(await this.#services().tokens.issueToken(client, body.scopes)),
      })
    })
    route('post', '/applications/:id/map-keys', MANAGE, async (context, caller) => {
      const application = await this.#ownApplication(context, caller)
      const body = await readBody(context.req.raw, {
        ...{ consumerKey: text(255), consumerSecret: text(255), keyType: KEY_TYPE },
        keyManager: optional(nameText(100), ''),
      })
      const { consumerKey, consumerSecret, keyType } = body
      const mapped = await this.#applications.mapKeys(application, consumerKey, consumerSecret, keyType, caller)
      const representation =
        mapped.request === null
          ? keyRepresentation(mapped.client, '', this.#services())
          : keyRequestRepresentation(mapped.request, this.#services())
      return context.json({ ...representation, mode: 'MAPPED' })
    })
    for (const path of ['/applications/:id/oauth-keys', '/applications/:id/keys']) {
      route('get', path, VIEW, async (context, caller) => {
        const application = await this.#ownApplication(context, caller)
        const keys = await this.#applications.listKeys(application)
        const requests = await this.#approvals.keyRequests(application)
        const rows = [
          ...keys.map(client => keyRepresentation(client, '', this.#services())),
          ...requests.map(request => keyRequestRepresentation(request, this.#services())),
        ]
        return context.json({ count: rows.length, list: rows })
      })
    }
  }

  #addKeyChanges(): void {
    const { route } = this.#resources
    const path = '/applications/:id/oauth-keys/:key'
    const keyOf = async (context: Context, caller: AdminCaller) =>
      this.#applications.findKey(await this.#ownApplication(context, caller), pathParameter(context, 'key'))
    route('get', path, VIEW, async (context, caller) =>
      context.json(keyRepresentation(await keyOf(context, caller), '', this.#services())),
    )
    route('put', path, MANAGE, async (context, caller) => {
      const client = await keyOf(context, caller)
      const body = await readBody(context.req.raw, KEY_CHANGE, KEY_READ_ONLY)
      const keys = keyRequestOf({ ...body, validityTime: 0 }, body.supportedGrantTypes)
      return context.json(
        keyRepresentation(await this.#applications.updateKey(client, keys, caller), '', this.#services()),
      )
    })
    route('delete', path, MANAGE, async (context, caller) => {
      await this.#applications.removeKey(await keyOf(context, caller), caller)
      return context.body(null, 200)
    })
    route('post', `${path}/regenerate-secret`, MANAGE, async (context, caller) => {
      const client = await keyOf(context, caller)
      const consumerSecret = await this.#applications.renewSecret(client, caller)
      return context.json({ consumerKey: client.consumerKey, consumerSecret })
    })
    route('post', `${path}/generate-token`, MANAGE, async (context, caller) => {
      const client = await keyOf(context, caller)
      const body = await readBody(context.req.raw, { scopes: optional(list(scopeText(), 100), ['default']) }, [
        'consumerSecret',
        'validityPeriod',
        'revokeToken',
        'additionalProperties',
        'grantType',
      ])
      const grant = 'client_credentials'
      if (![client.grants, this.#services().tokens.grants].every(grants => grants.includes(grant)))
        throw invalidProblem('grantType', `the keys or the key manager do not allow ${grant}`)
      return context.json(tokenRepresentation(await this.#services().tokens.issueToken(client, body.scopes)))
    })
  }

  #addApiKeys(): void {
    const { route } = this.#resources
    const path = '/applications/:id/api-keys/:type'
    const NO_LIMITS = { permittedIP: '', permittedReferer: '' }
    route('post', `${path}/generate`, API_KEY, async (context, caller) => {
      const application = await this.#ownApplication(context, caller)
      const { validityPeriod, additionalProperties } = await readBody(context.req.raw, {
        validityPeriod: optional(integer(-1, VALIDITY_S_MAX), -1),
        additionalProperties: optional(
          object({ permittedIP: optional(text(2048, 0), ''), permittedReferer: optional(text(2048, 0), '') }),
          NO_LIMITS,
        ),
      })
      if (validityPeriod === 0) throw invalidProblem('validityPeriod', 'expected seconds or -1')
      const permittedIps = splitList(additionalProperties.permittedIP)
      const invalid = permittedIps.find(address => readNetwork(address) === '')
      if (invalid !== undefined)
        throw invalidProblem('permittedIP', 'expected addresses or networks, separated by commas')
      const keyType = KEY_TYPE.read(pathParameter(context, 'type'))
      if (keyType === undefined) throw invalidProblem('keyType', `expected ${KEY_TYPE.expected}`)
      await this.#approvals.requireApproved(application)
      const terms = { permittedIps, permittedReferers: splitList(additionalProperties.permittedReferer) }
      const issued = await this.#services().tokens.issueApiKey({
        application,
        keyType,
        validityS: validityPeriod,
        ...terms,
      })
      const validityTime = Math.floor((issued.expiresMs - this.#services().nowMs()) / 1000)
      this.#services().report('info', 'API key generated', { USER: caller.user, APPLICATION: application.name })
      return context.json({ apikey: issued.key, validityTime: validityPeriod === -1 ? -1 : validityTime })
    })
    route('post', `${path}/revoke`, API_KEY, async (context, caller) => {
      const application = await this.#ownApplication(context, caller)
      const { apikey } = await readBody(context.req.raw, { apikey: text(8192) })
      const { registry, tokens, report } = this.#services()
      const known = await tokens.verifyApiKey(apikey)
      if (known === null || known.applicationId !== application.id)
        throw invalidProblem('apikey', 'is not an API key of this application')
      await registry.tokens.addRevocation({ key: known.jti, expiresMs: known.expiresMs }, '')
      report('info', 'API key revoked', { USER: caller.user, APPLICATION: application.name })
      return context.body(null, 200)
    })
  }

  #addApis(): void {
    const { route } = this.#resources
    route('get', '/apis', VIEW, async context => {
      const page = readQuery(context.req.raw, PAGE)
      const { apis, portal } = this.#services()
      const all = listedApis(await apis.list(), portal)
      const rows = all.slice(page.offset, page.offset + page.limit).map(apiInfoRepresentation)
      return context.json(listRepresentation(`${DEVELOPER_PORTAL}/apis`, rows, page, all.length))
    })
    route('get', '/apis/:id', VIEW, async context => {
      const api = await this.#applications.findApi(pathParameter(context, 'id'))
      const { environments } = this.#services().portal
      return context.json({ ...apiRepresentation(api), endpointURLs: endpointUrls(api, environments) })
    })
  }

  #addSettings(): void {
    const { route } = this.#resources
    addTiers(this.#resources, this.#services, { application: 'application', subscription: 'subscription' }, VIEW)
    route('get', '/settings', VIEW, async context => {
      const { portal, tokens } = this.#services()
      const gateways = portal.environments.filter(({ isInConsole }) => isInConsole)
      const urls = gateways.flatMap(({ addresses: [own] }) => [own!.http, own!.https]).filter(url => url !== '')
      const grantTypes = tokens.grants
      return context.json({ grantTypes, apiGatewayEndpoint: urls.join(','), mapExistingAuthApps: true })
    })
    route('get', '/key-managers', VIEW, async context => {
      return context.json({ count: 1, list: [keyManagerRepresentation(this.#services())] })
    })
  }
}

/** Hidden APIs are still shown by their ids (D190). */
function listedApis(all: readonly ManagedApi[], portal: PortalSettings): readonly ManagedApi[] {
  const states = VISIBLE_STATES.filter(state => state !== 'DEPRECATED' || portal.showsDeprecatedApis)
  const visible = all.filter(({ state }) => states.includes(state))
  if (portal.showsAllVersions) return visible
  const newest = Map.groupBy(visible, ({ name }) => name)
  return visible.filter(api => newest.get(api.name)!.every(other => compareVersions(other.version, api.version) <= 0))
}

/** `1.10.0` is later than `1.9.0`. */
function compareVersions(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true })
}

function keyRequestOf(
  body: {
    readonly callbackUrl: string
    readonly validityTime: number
    readonly additionalProperties: Readonly<Record<string, string>>
  },
  grants: readonly string[],
): Omit<KeyRequest, 'keyType'> {
  const expiry = body.additionalProperties[EXPIRY]!
  const configured = expiry === 'N/A' ? 0 : integer(1, VALIDITY_S_MAX).read(expiry)
  if (configured === undefined) throw invalidProblem(EXPIRY, 'expected seconds or N/A')
  return { grants, redirectUris: splitList(body.callbackUrl), validityS: configured || body.validityTime }
}

function tokenRepresentation({ token, scopes, validityS }: IssuedAccessToken) {
  return { accessToken: token, tokenScopes: scopes, validityTime: validityS }
}

function splitList(text: string): readonly string[] {
  return text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
}
