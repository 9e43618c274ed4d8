/** `[apim.analytics]`: events about requests for analytics nodes; not acted on. */
import { allInert, repeatedSection, sameAs, section } from '../key.ts'
import { choice, flag, secret, text, url, urls } from '../kinds.ts'
import { requiredForCustom, sameLength } from './shared-rules.ts'

const ANALYTICS = 'not built yet: analytics'

export const analytics = section(
  'apim.analytics',
  'Events about requests, sent to analytics nodes.',
  allInert(
    {
      enable: flag(false, 'Publish events about requests.'),
      store_api_url: url(
        'https://localhost:7444',
        ['https', 'http'],
        'REST address of the analytics store, or of the load balancer before its nodes.',
      ),
      username: sameAs('super_admin.username', text('', 'Account at the analytics nodes.')),
      password: sameAs('super_admin.password', secret('Password of `username`.')),
      receiver_username: sameAs('.username', text('', 'Account for publishing events.')),
      receiver_password: sameAs('.password', secret('Password of `receiver_username`.')),
      store_api_username: sameAs('.username', text('', 'Account at the REST API of the store.')),
      store_api_password: sameAs('.password', secret('Password of `store_api_username`.')),
      event_publisher_type: choice('default', ['default', 'custom'], 'Built-in or custom event publisher.'),
      event_publisher_impl: text('', 'Class that publishes events where `event_publisher_type` is `custom`.'),
      publish_response_size: flag(false, 'Publish the size of each response.'),
    },
    ANALYTICS,
  ),
  {
    roles: ['api-devportal', 'api-publisher', 'gateway-worker'],
    rules: [requiredForCustom('event_publisher_type', 'event_publisher_impl')],
  },
)

const NODES = ['tcp', 'ssl'] as const

export const analyticsGroup = repeatedSection(
  'apim.analytics.url_group',
  'A group of analytics nodes; every group receives every event.',
  allInert(
    {
      analytics_url: urls(['tcp://localhost:7612'], NODES, 'Addresses for events, one per node.'),
      analytics_auth_url: urls(
        ['ssl://localhost:7712'],
        NODES,
        'Addresses for login, one per node, in the same order.',
      ),
      type: choice(
        '',
        ['', 'loadbalance', 'failover'],
        'Whether the nodes share the events or replace each other after a failure.',
      ),
    },
    ANALYTICS,
  ),
  { roles: ['gateway-worker'], rules: [sameLength('analytics_url', 'analytics_auth_url')] },
)
