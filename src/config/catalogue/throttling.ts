/**
 * `[apim.throttling]` and its tables. The specification has the keys of the connection to a traffic manager in its URL
 * groups; the reference platform's own files have them above, once for all groups. Both are read: a group that does not
 * say follows the section.
 */
import { allInert, except, type Key, repeatedSection, required, sameAs, section, upTo } from '../key.ts'
import { choice, count, duration, flag, host, secret, text, url, urls, words } from '../kinds.ts'
import { inPairs, mustNotExceed } from './agreements.ts'
import { DAY_MS } from './passthru-keys.ts'

const THROTTLING = 'not built yet: throttling'
const DAY_S = 86_400
const EVENTS = ['tcp', 'ssl'] as const
const BROKERS = ['tcp', 'ssl', 'amqp', 'amqps'] as const

function pooled(fallback: number, meaning: string): Key<number> {
  return count(fallback, 'publishers', 0, 1_000_000, meaning)
}

function delay(meaning: string): Key<number> {
  return except(0, 'at once', duration(0, 'ms', 1, DAY_MS, meaning))
}

const name = (meaning: string): Key<string> => sameAs('super_admin.username', text('', meaning))
const word = (meaning: string): Key<string> => sameAs('super_admin.password', secret(meaning))

/** Those of a traffic manager on the node itself. */
export const OWN_SERVICES = 'https://localhost:9443/services/'

const connection = {
  username: name('Account at the traffic manager.'),
  password: word('Password that goes with `username`.'),
  receiver_username: name('Account that events are published with.'),
  receiver_password: word('Password that goes with `receiver_username`.'),
  'policy_deploy.username': name('Account that policies are deployed with.'),
  'policy_deploy.password': word('Password that goes with `policy_deploy.username`.'),
  'jms.username': name('Account at the broker of decisions.'),
  'jms.password': word('Password that goes with `jms.username`.'),
  'publisher.max_idle': pooled(1000, 'Publishers of events kept without work.'),
  'publisher.init_idle_size': upTo(
    'publisher.max_idle',
    pooled(200, 'Publishers of events kept without work from the start.'),
  ),
  'publisher.pool_size': upTo('publisher.max_pool_size', pooled(200, 'Publishers of events that work at once.')),
  'publisher.max_pool_size': pooled(1000, 'Publishers of events that work at once when many events wait.'),
  'publisher.keep_alive_time': duration(
    200,
    's',
    0,
    DAY_S,
    'How long a publisher beyond `publisher.pool_size` is kept.',
  ),
  service_url: url(OWN_SERVICES, ['https', 'http'], 'Address of the services of the traffic manager.'),
  'jms.start_delay': delay('How long after the start decisions are listened for, such as `5m`.'),
  'jms.destination': text('throttleData', 'Where decisions are published at the broker.'),
  'jms.conn_jndi_name': text('TopicConnectionFactory', 'Name under which the connection to the broker is looked up.'),
  'jms.destination_type': choice('topic', ['topic', 'queue'], 'What `jms.destination` is.'),
  decision_connection_type: choice('andes', ['andes'], 'Kind of the connection to the broker of decisions.'),
  'jms.java_naming_factory_initial': text('', 'Class that looks up `jms.conn_jndi_name`.'),
}

const POOLS = [
  mustNotExceed('publisher.init_idle_size', 'publisher.max_idle'),
  mustNotExceed('publisher.pool_size', 'publisher.max_pool_size'),
] as const

export const throttling = section(
  'apim.throttling',
  'Limits of requests: how they are counted, and how gateways hear that one is reached.',
  allInert(
    {
      enable_data_publishing: flag(true, 'Publish requests to the traffic manager.'),
      enable_policy_deploy: flag(true, 'Deploy throttling policies.'),
      enable_blacklist_condition: flag(true, 'Heed conditions under which requests are blocked.'),
      enable_persistence: flag(false, 'Keep the counters of the traffic manager over a restart.'),
      enable_decision_connection: flag(true, 'Listen for decisions.'),
      enable_unlimited_tier: flag(true, 'Have a tier without a limit.'),
      enable_header_based_throttling: flag(false, 'Allow policies about fields of requests.'),
      enable_jwt_claim_based_throttling: flag(false, 'Allow policies about claims of tokens.'),
      enable_query_param_based_throttling: flag(false, 'Allow policies about query parameters.'),
      event_type: choice('Binary', ['Binary', 'Thrift'], 'How events are encoded; `Binary` is recommended.'),
      receiver_url: url('', EVENTS, 'Where the traffic manager takes events; empty: at this node.'),
      skip_redeploying_policies: words([], 'Policies that are not deployed anew at start.'),
      throttle_decision_endpoints: required(urls([], BROKERS, 'Brokers at which decisions are listened for.')),
      ...connection,
    },
    THROTTLING,
  ),
  { roles: ['gateway-worker', 'traffic-manager'], rules: POOLS },
)

const SECTION = 'apim.throttling'

/** Worth what the section says, key by key. */
function following<K extends Readonly<Record<string, Key<unknown>>>>(keys: K): K {
  const followers = Object.entries(keys).map(([path, key]) => [
    path,
    { ...sameAs(`${SECTION}.${path}`, key), ceiling: '' },
  ])
  return Object.fromEntries(followers) as K
}

export const throttlingGroup = repeatedSection(
  'apim.throttling.url_group',
  'Traffic managers that belong together; each group hears of each request. Left out is as in `[apim.throttling]`.',
  allInert(
    {
      traffic_manager_urls: required(urls([], EVENTS, 'Where events are sent to, one address per traffic manager.')),
      traffic_manager_auth_urls: required(urls([], EVENTS, 'Where the gateway logs in, in the same order.')),
      type: choice(
        'failover',
        ['failover', 'loadbalance'],
        'Whether traffic managers stand in for each other or share events.',
      ),
      ...following({
        ...connection,
        'blacklist_condition.start_delay': delay('How long after the start blocking conditions are fetched.'),
      }),
    },
    THROTTLING,
  ),
  {
    roles: ['gateway-worker'],
    rules: [inPairs('traffic_manager_urls', 'traffic_manager_auth_urls'), ...POOLS],
  },
)

export const blockingConditions = section(
  'apim.throttling.blacklist_condition',
  'Conditions under which requests are blocked, fetched by each gateway.',
  allInert(
    {
      start_delay: delay('How long after the start conditions are fetched, such as `5m`.'),
      period: except(
        0,
        'never',
        duration(0, 'ms', 1, 31 * DAY_MS, 'How often conditions are fetched anew, such as `1h`.'),
      ),
    },
    THROTTLING,
  ),
  { roles: ['gateway-worker'] },
)

function address(whose: string): { readonly hostName: Key<string>; readonly port: Key<number> } {
  return {
    hostName: host('', `Host at which ${whose} is listened to.`),
    port: except(0, 'none', count(0, '', 1, 65_535, `Port at which ${whose} is listened to.`)),
  }
}

export const eventSync = section(
  'apim.throttling.event_sync',
  'Where a traffic manager gives its state to another one.',
  allInert(address('the other traffic manager'), THROTTLING),
  { roles: ['traffic-manager'] },
)

export const eventManagement = section(
  'apim.throttling.event_management',
  'Where a traffic manager agrees with another one on who does what.',
  allInert(address('the other traffic manager'), THROTTLING),
  { roles: ['traffic-manager'] },
)
