/** Mediators of the reference platform that are absent, and what takes their place. */

const SCRIPT = 'write it as <script>, or as <class> with an ES module'
const SHAPE = 'use <payloadFactory>, <enrich>, or <script>'
const BRANCH = 'use <switch> or <filter>'
const SERVICE = 'ask a service with <call>'

/** Remedies by the name of the element. */
const REMEDIES: Readonly<Record<string, string>> = {
  endpoint: 'put it within <call> or <send>',
  xslt: SHAPE,
  fastXSLT: SHAPE,
  xquery: SHAPE,
  smooks: SHAPE,
  datamapper: SHAPE,
  jsontransform: SHAPE,
  conditionalRouter: BRANCH,
  router: BRANCH,
  dblookup: SERVICE,
  dbreport: SERVICE,
  dataServiceCall: SERVICE,
  store: SERVICE,
  event: SERVICE,
  publishEvent: SERVICE,
  transaction: SERVICE,
  rule: SCRIPT,
  ejb: SCRIPT,
  bean: SCRIPT,
  spring: SCRIPT,
  pojoCommand: SCRIPT,
  throttle: 'use the throttling policies of the gateway',
  oauthService: 'use the security of the API, which checks tokens',
  entitlementService: 'use scopes of the API, or <opa>',
  ntlm: 'use the endpoint security of the API',
}

/** Returns the remedy; undefined for an element that is no mediator of the reference platform. */
export function remedyOf(name: string): string | undefined {
  const known = Object.keys(REMEDIES).find(each => each.toLowerCase() === name.toLowerCase())
  return known === undefined ? undefined : REMEDIES[known]
}
