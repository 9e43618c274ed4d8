/** Options and help of the commands about applications, their keys and subscriptions, and users. */

/** Option -> the commands that know it. */
export const MANAGEMENT_OPTIONS = {
  tenant: ['application', 'key', 'subscription', 'user', 'token'],
  owner: ['application', 'key', 'subscription', 'token'],
  tier: ['application', 'subscription'],
  description: ['application'],
  'token-type': ['application'],
  type: ['key', 'token'],
  grants: ['key'],
  callback: ['key'],
  validity: ['key'],
  ips: ['key'],
  referers: ['key'],
  scopes: ['token'],
  roles: ['user'],
} as const

export const MANAGEMENT_COMMANDS: Readonly<Record<string, string>> = {
  application: 'application WORD...  applications of the running gateway: list, create NAME, show NAME, delete NAME',
  key: 'key WORD APP...      keys of an application: generate, list, renew and remove CONSUMER_KEY, api (an API key)',
  subscription: 'subscription WORD... list [APP], add APP API, block APP API, unblock APP API, remove APP API',
  user: 'user WORD...         list, add NAME, passwd NAME, remove NAME',
  token: 'token APP            an access token for an application, as its own client credentials would get it',
  revoke: 'revoke               ends a token or an API key, which is read from standard input',
}

const WHICH = `The gateway is the one that uses the data folder: give --home and --data as to start.
`

export const MANAGEMENT_DETAILS: Readonly<Record<string, string>> = {
  application: `  --owner USER             whose it is (default: the super admin's)
  --tenant DOMAIN          tenant of the owner (default: carbon.super)
  --tier NAME              its throttling policy (default: Unlimited)
  --token-type TYPE        JWT or OPAQUE: what its tokens are (default: JWT)
  --description TEXT       for those who see it in a list
APP and NAME are the name of an application, or its id. What files of the home declare is listed and not changed.
${WHICH}`,
  key: `sluice key generate APP              consumer key and secret; the secret is told once
sluice key renew APP CONSUMER_KEY    another secret; the one before is good no more
sluice key api APP                   an API key, which is told once and lives until it is revoked or over
  --type TYPE              PRODUCTION or SANDBOX (default: PRODUCTION)
  --grants LIST            of generate: client_credentials, password, refresh_token, authorization_code, ...
  --callback URL           of generate: where authorization_code comes back to; several with commas
  --validity SECONDS       of generate: of its access tokens; of api: of the key (-1: as long as there can be)
  --ips LIST               of api: addresses and networks that may use it
  --referers LIST          of api: referers that may use it
  --owner, --tenant        whose application
${WHICH}`,
  subscription: `sluice subscription add Shop Orders:1.0.0 --tier Gold
API is name:version. A blocked subscription is answered with 900907 on every reactor when the command ends.
  --tier NAME              of add (default: the first that the API has, else Unlimited)
  --owner, --tenant        whose application
${WHICH}`,
  user: `The password is the first line of standard input; without one a password is made and told once.
  --roles LIST             of add: with commas
  --tenant DOMAIN          (default: carbon.super)
${WHICH}`,
  token: `Prints the token and nothing else: curl -H "Authorization: Bearer $(sluice token Shop)" ...
  --type TYPE              of which keys, PRODUCTION or SANDBOX (default: PRODUCTION)
  --scopes LIST            with commas
  --owner, --tenant        whose application
${WHICH}`,
  revoke: `sluice revoke < token.txt            a JWT, of any issuer; no reactor takes it any more when the command ends
Without a key manager the node itself remembers it (apim.token.revocation.enable_persistent_notifier). Of what is no JWT
only its key manager knows: it is revoked at /revoke, with the credentials of its client.
${WHICH}`,
}
