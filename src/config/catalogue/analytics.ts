/** `[apim.analytics]`: where events about requests go. */
import { allInert, repeatedSection, sameAs, section } from '../key.ts'
import { choice, flag, secret, text, url, urls } from '../kinds.ts'
import { customNeeds, inPairs } from './agreements.ts'

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
        'REST address of the analytics store; of several nodes, that of their load balancer.',
      ),
      username: sameAs('super_admin.username', text('', 'Account at the analytics nodes.')),
      password: sameAs('super_admin.password', secret('Password that goes with `username`.')),
      receiver_username: sameAs('.username', text('', 'Account that events are published with.')),
      receiver_password: sameAs('.password', secret('Password that goes with `receiver_username`.')),
      store_api_username: sameAs('.username', text('', 'Account at the REST address of the store.')),
      store_api_password: sameAs('.password', secret('Password that goes with `store_api_username`.')),
      event_publisher_type: choice('default', ['default', 'custom'], 'What publishes events.'),
      event_publisher_impl: text('', 'Class that publishes events where `event_publisher_type` is `custom`.'),
      publish_response_size: flag(false, 'Publish how many bytes a response had.'),
    },
    ANALYTICS,
  ),
  {
    roles: ['api-devportal', 'api-publisher', 'gateway-worker'],
    rules: customNeeds('event_publisher_type', 'event_publisher_impl'),
  },
)

const NODES = ['tcp', 'ssl'] as const

export const analyticsGroup = repeatedSection(
  'apim.analytics.url_group',
  'Analytics nodes that belong together; every group gets every event.',
  allInert(
    {
      analytics_url: urls(['tcp://localhost:7612'], NODES, 'Where events are sent to, one address per node.'),
      analytics_auth_url: urls(['ssl://localhost:7712'], NODES, 'Where the gateway logs in, in the same order.'),
      type: choice('', ['', 'loadbalance', 'failover'], 'Whether the nodes share events or stand in for each other.'),
    },
    ANALYTICS,
  ),
  { roles: ['gateway-worker'], rules: [inPairs('analytics_url', 'analytics_auth_url')] },
)
