/**
 * `[apim.throttling]` and its tables. The specification has the connection keys of a traffic manager in
 * URL groups, files of the reference platform have them once in the section. Keys of a group default to the section.
 */
import { isSet } from '../conditions.ts'
import {
  actsIf,
  allActIf,
  allInert,
  inert,
  type Rule,
  live,
  ofGateway,
  ofKeyManager,
  ofTrafficManager,
  withSpecialValue,
  type Key,
  repeatedSection,
  required,
  sameAs,
  section,
  defaultCappedBy,
} from '../key.ts'
import { choice, integer, duration, flag, host, isReadableByOthers, secret, text, url, urls, list } from '../kinds.ts'
import { sameLength, mustNotExceed } from './shared-rules.ts'
import { DAY_MS } from './passthru-keys.ts'

const DAY_S = 86_400
const EVENTS = ['tcp', 'ssl'] as const
const BROKERS = ['tcp', 'ssl', 'amqp', 'amqps'] as const

function pooled(defaultValue: number, meaning: string): Key<number> {
  return integer(defaultValue, 'publishers', 0, 1_000_000, meaning)
}

function delay(meaning: string): Key<number> {
  return withSpecialValue(0, 'at once', duration(0, 'ms', 1, DAY_MS, meaning))
}

const name = (meaning: string): Key<string> => sameAs('super_admin.username', text('', meaning))
const word = (meaning: string): Key<string> => sameAs('super_admin.password', secret(meaning))

/** Services of a traffic manager on this node. */
export const OWN_SERVICES = 'https://localhost:9443/services/'

const ONE_CONNECTION = 'one connection to each traffic manager carries the reports of all reactors: nothing is pooled'
const NO_DEPLOYMENT = 'a report carries the quotas of its keys, so no policy is deployed to a traffic manager'
const AMQP = 'brokers speak AMQP 0-9-1, without JNDI'
const BROKER = isSet('apim.throttling.throttle_decision_endpoints')

const connection = {
  ...allInert(
    {
      username: name('Account at the traffic manager.'),
      password: word('Password of `username`.'),
    },
    'gateways log in with receiver_username',
  ),
  receiver_username: name('Account for publishing events.'),
  receiver_password: word('Password of `receiver_username`.'),
  ...allInert(
    {
      'policy_deploy.username': name('Account for deploying policies.'),
      'policy_deploy.password': word('Password of `policy_deploy.username`.'),
      service_url: url(OWN_SERVICES, ['https', 'http'], 'Address of the services of the traffic manager.'),
    },
    NO_DEPLOYMENT,
  ),
  ...allActIf(BROKER, {
    'jms.username': name('Account at the broker of decisions.'),
    'jms.password': word('Password of `jms.username`.'),
    'jms.start_delay': delay('Delay after the start before the node connects to the broker, such as `5m`.'),
    'jms.destination': text(
      'throttleData',
      'Topic of decisions and deny policies at the broker: a routing key of `amq.topic`.',
    ),
  }),
  ...allInert(
    {
      'publisher.max_idle': pooled(1000, 'Largest number of idle event publishers.'),
      'publisher.init_idle_size': defaultCappedBy(
        'publisher.max_idle',
        pooled(200, 'Idle event publishers from the start.'),
      ),
      'publisher.pool_size': defaultCappedBy('publisher.max_pool_size', pooled(200, 'Concurrent event publishers.')),
      'publisher.max_pool_size': pooled(1000, 'Concurrent event publishers when the queue is full.'),
      'publisher.keep_alive_time': duration(
        200,
        's',
        0,
        DAY_S,
        'How long an idle publisher beyond `publisher.pool_size` is kept.',
      ),
    },
    ONE_CONNECTION,
  ),
  'jms.destination_type': inert(
    choice('topic', ['topic'], 'Type of `jms.destination`; of a queue each decision would reach one gateway alone.'),
    'topic is the only type',
  ),
  ...allInert(
    {
      'jms.conn_jndi_name': text('TopicConnectionFactory', 'JNDI name of the connection to the broker.'),
      decision_connection_type: choice('andes', ['andes'], 'Type of the connection to the broker of decisions.'),
      'jms.java_naming_factory_initial': text('', 'JNDI context factory class for `jms.conn_jndi_name`.'),
    },
    AMQP,
  ),
}

const POOLS = [
  mustNotExceed('publisher.init_idle_size', 'publisher.max_idle'),
  mustNotExceed('publisher.pool_size', 'publisher.max_pool_size'),
] as const

/** Keys that this gateway acts on. */
const ACTING = {
  enable_policy_deploy: live(
    flag(true, 'Gateways apply the policies of the registry; files and built-in tiers always apply.'),
  ),
  enable_blacklist_condition: live(flag(true, 'Deny policies refuse whoever they name.')),
  enable_unlimited_tier: live(flag(true, 'Applications and subscriptions may have the tier `Unlimited`.')),
  enable_header_based_throttling: live(flag(false, 'Condition groups with conditions on request fields apply.')),
  enable_jwt_claim_based_throttling: live(flag(false, 'Condition groups with conditions on token claims apply.')),
  enable_query_param_based_throttling: live(flag(false, 'Condition groups with conditions on query parameters apply.')),
  skip_redeploying_policies: live(
    list([], 'Names of built-in tiers that stay as they are built in, whatever the registry has under the name.'),
  ),
  unauthenticated_tier: ofGateway(
    live(text('Unlimited', 'Subscription tier of requests without credentials, counted by address.')),
  ),
  'counters.max': integer(
    1_000_000,
    'counters',
    1000,
    100_000_000,
    'Largest number of counters, 160 bytes each once used.',
  ),
  token_tier: ofGateway(live(text('', 'Advanced policy of `/token` on the ports of the gateway; empty: no limit.'))),
  revoke_tier: ofGateway(live(text('', 'Advanced policy of `/revoke` on the ports of the gateway; empty: no limit.'))),
  throttled_messages: ofGateway(
    live(
      choice(
        'close',
        ['close', 'drop'],
        'WebSocket messages beyond a limit close the connection with 1008, or are dropped.',
      ),
    ),
  ),
  rate_limit_headers: ofGateway(
    live(flag(false, 'Responses to requests that pass carry `RateLimit` and `RateLimit-Policy` too.')),
  ),
}

const BINARY: Rule<{ readonly event_type: 'Binary' | 'Thrift' }> = {
  keys: ['event_type'],
  must: 'event_type must be Binary: this gateway reports in a form of its own, and Thrift is not spoken',
  severity: 'error',
  holds: it => it.event_type === 'Binary',
}

export const throttling = section(
  'apim.throttling',
  'Throttling: counting of requests, and the decisions that gateways enforce.',
  {
    ...ACTING,
    enable_data_publishing: ofGateway(flag(true, 'Report what passes to the traffic managers of `url_group`.')),
    enable_persistence: flag(
      false,
      'Keep the counters of windows of a minute and longer across restarts, in `throttle-counters` of the data ' +
        'folder; a traffic manager in `traffic-counters`.',
    ),
    enable_decision_connection: actsIf(
      BROKER,
      flag(true, 'Obey the decisions of traffic managers, which come through the broker.'),
    ),
    publishing_interval: ofGateway(
      duration(100, 'ms', 10, 10_000, 'Time between two reports of a reactor to the traffic managers of `url_group`.'),
    ),
    event_type: inert(
      choice('Binary', ['Binary', 'Thrift'], 'Encoding of reports; `Thrift` is refused.'),
      'reports have one form',
    ),
    receiver_url: ofTrafficManager(
      url(
        '',
        EVENTS,
        'Address at which a traffic manager receives reports; empty: `ssl` at port 9711 and `server.offset` for role ' +
          '`traffic-manager`, none for other roles.',
      ),
    ),
    throttle_decision_endpoints: urls(
      [],
      BROKERS,
      'Brokers that carry decisions, revocations, subscriptions and policies; one that fails is replaced by the next.',
    ),
    ...connection,
  },
  { roles: ['api-key-manager', 'gateway-worker', 'traffic-manager'], rules: [...POOLS, BINARY] },
)

const SECTION = 'apim.throttling'

/** Keys of a group, each with the value of the section as its default. */
function following<K extends Readonly<Record<string, Key<unknown>>>>(keys: K): K {
  const followers = Object.entries(keys).map(([path, key]) => [
    path,
    { ...sameAs(`${SECTION}.${path}`, key), cappedBy: '' },
  ])
  return Object.fromEntries(followers) as K
}

export const throttlingGroup = repeatedSection(
  'apim.throttling.url_group',
  'A group of traffic managers; every group receives every event. Keys default to those of `[apim.throttling]`.',
  {
    traffic_manager_urls: required(urls([], EVENTS, 'Addresses for reports, one per traffic manager.')),
    traffic_manager_auth_urls: required(
      urls([], EVENTS, 'Addresses for login, in the same order; reports go there where only they have TLS (`ssl`).'),
    ),
    type: choice(
      'failover',
      ['failover', 'loadbalance'],
      'Traffic managers replace each other after a failure, or each counts its share of the keys.',
    ),
    ...following({
      ...connection,
      'blacklist_condition.start_delay': inert(
        delay('Delay after the start before blocking conditions are fetched.'),
        'deny policies come from the registry and the broker, not from traffic managers',
      ),
    }),
  },
  {
    roles: ['gateway-worker'],
    rules: [sameLength('traffic_manager_urls', 'traffic_manager_auth_urls'), ...POOLS],
  },
)

export const blockingConditions = section(
  'apim.throttling.blacklist_condition',
  'Deny policies, which each node reads from its registry; files of the home always apply.',
  {
    start_delay: delay('Delay after the start before deny policies of the registry apply, such as `5m`.'),
    period: live(
      ofKeyManager(
        withSpecialValue(
          0,
          'never',
          duration(0, 'ms', 1, 31 * DAY_MS, 'Interval at which deny policies are read again, such as `1h`.'),
        ),
      ),
    ),
  },
  { roles: ['gateway-worker'] },
)

const NO_EXCHANGE =
  'traffic managers exchange nothing: each key is counted by one of them, and decisions go through the broker'

function address(whose: string): { readonly hostName: Key<string>; readonly port: Key<number> } {
  return {
    hostName: host('', `Host at which this node listens to ${whose}.`),
    port: withSpecialValue(0, 'none', integer(0, '', 1, 65_535, `Port at which this node listens to ${whose}.`)),
  }
}

export const eventSync = section(
  'apim.throttling.event_sync',
  'Synchronisation of state between two traffic managers.',
  allInert(address('the other traffic manager'), NO_EXCHANGE),
  { roles: ['traffic-manager'] },
)

export const eventManagement = section(
  'apim.throttling.event_management',
  'Coordination between two traffic managers.',
  allInert(address('the other traffic manager'), NO_EXCHANGE),
  { roles: ['traffic-manager'] },
)

/** Tells whether a password goes to another machine in clear text. */
function isShown({ url: address, password }: { readonly url: string; readonly password: string }): boolean {
  return password !== '' && isReadableByOthers(address.replace(/^redis:/, 'http:'))
}

export const throttlingRedis = section(
  'apim.throttling.redis',
  'Redis in which gateways count together, for policies with `scope: redis`. TLS is as for backends.',
  {
    url: live(
      url('', ['redis', 'rediss'], 'Address such as `redis://10.0.0.5:6379`; empty: gateways count for themselves.'),
    ),
    username: live(text('', 'Account; empty: the default one.')),
    password: live(secret('Password of the account; empty: none is sent.')),
    database: live(integer(0, '', 0, 65_535, 'Number of the database.')),
    key_prefix: live(text('sluice:', 'Beginning of every key; gateways with the same one count together.')),
    timeout: live(duration(100, 'ms', 1, 60_000, 'Longest wait of a request for Redis; then its fail mode decides.')),
    'pending.max': live(
      integer(10_000, 'requests', 1, 1_000_000, 'Largest number of requests that wait for Redis, per reactor.'),
    ),
    gateways: live(
      integer(
        1,
        'gateways',
        1,
        10_000,
        'Smallest number of gateways among which fail mode `local` divides a limit; Redis knows how many there are.',
      ),
    ),
  },
  {
    roles: ['gateway-worker'],
    rules: [
      {
        keys: ['url'],
        must: 'url must have a host and a port only; username, password and database are keys of their own',
        severity: 'error',
        holds: it => it.url === '' || /^rediss?:\/\/[^/?#@]+\/?$/.test(it.url),
      },
      {
        keys: ['password', 'url'],
        must: 'password goes to another machine in clear text: use rediss://',
        severity: 'warning',
        holds: it => !isShown(it),
      },
    ],
  },
)
