/** `[apim.analytics]`: events about requests for analytics nodes. */
import { isNot, isOneOf, isTrue } from '../conditions.ts'
import { actsIf, allActIf, allInert, repeatedSection, sameAs, section } from '../key.ts'
import { choice, flag, integer, isReadableByOthers, secret, text, url, urls } from '../kinds.ts'
import { requiredForCustom, sameLength } from './shared-rules.ts'

const NO_STORE = 'not acted on: the gateway publishes events, and asks no store for them'
const IS_ON = isTrue('.enable')
const IS_BUILT_IN = isNot('.event_publisher_type', 'custom')

export const analytics = section(
  'apim.analytics',
  'Events about requests, sent to analytics nodes.',
  {
    enable: flag(false, 'Publish events about requests.'),
    ...allActIf(IS_ON, {
      username: sameAs('super_admin.username', text('', 'Default of `receiver_username`.')),
      password: sameAs('super_admin.password', secret('Default of `receiver_password`.')),
      receiver_username: actsIf(IS_BUILT_IN, sameAs('.username', text('', 'Account for publishing events.'))),
      receiver_password: actsIf(IS_BUILT_IN, sameAs('.password', secret('Password of `receiver_username`.'))),
      event_publisher_type: choice('default', ['default', 'custom'], 'Built-in or custom event publisher.'),
      event_publisher_impl: actsIf(
        isOneOf('.event_publisher_type', 'custom'),
        text('', 'ES module with `publish(events)`, a path inside the home, where `event_publisher_type` is `custom`.'),
      ),
      publish_response_size: flag(false, 'Publish the sizes of request and response.'),
      client_address: choice(
        'network',
        ['full', 'network', 'none'],
        'Address of the client in events: whole, its network (/24 or /48), or none.',
      ),
      spool_max_bytes: integer(
        268_435_456,
        'bytes',
        1_048_576,
        Number.MAX_SAFE_INTEGER,
        'Events kept on disk, in the data folder, while their receiver is down; the oldest are dropped beyond.',
      ),
    }),
    ...allInert(
      {
        store_api_url: url(
          'https://localhost:7444',
          ['https', 'http'],
          'REST address of the analytics store, or of the load balancer before its nodes.',
        ),
        store_api_username: sameAs('.username', text('', 'Account at the REST API of the store.')),
        store_api_password: sameAs('.password', secret('Password of `store_api_username`.')),
      },
      NO_STORE,
    ),
  },
  {
    roles: ['api-devportal', 'api-publisher', 'gateway-worker'],
    rules: [requiredForCustom('event_publisher_type', 'event_publisher_impl')],
  },
)

const NODES = ['tcp', 'ssl'] as const

export const analyticsGroup = repeatedSection(
  'apim.analytics.url_group',
  'A group of analytics nodes; every group receives every event.',
  allActIf(isTrue('apim.analytics.enable'), {
    analytics_url: urls(
      ['tcp://localhost:7612'],
      NODES,
      'Addresses for events, one per node: `tcp` is HTTP to this machine, `ssl` is HTTPS.',
    ),
    analytics_auth_url: urls(['ssl://localhost:7712'], NODES, 'Addresses for login, one per node, in the same order.'),
    type: choice(
      '',
      ['', 'loadbalance', 'failover'],
      'Whether the nodes share the events or replace each other after a failure, which is the default.',
    ),
  }),
  {
    roles: ['gateway-worker'],
    rules: [
      sameLength('analytics_url', 'analytics_auth_url'),
      {
        keys: ['analytics_url', 'analytics_auth_url'],
        must: 'addresses of other machines must be ssl://: events and credentials are readable on the way otherwise',
        severity: 'error',
        holds: it => ![...it.analytics_url, ...it.analytics_auth_url].some(isPlainToOthers),
      },
    ],
  },
)

function isPlainToOthers(address: string): boolean {
  return isReadableByOthers(address.replace(/^tcp:/, 'http:'))
}
