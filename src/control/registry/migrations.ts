/** Migrations of the tables of the registry. */
import type { DdlSyntax, Migration } from '../../database/migrations.ts'

/** The database of a table: `shared` or `apim`. Both may be one. */
export type SchemaPart = 'shared' | 'apim'

const SHARED_V1: Migration = ({ text, table }) => [
  ...table('sluice_settings', ['name varchar(64) not null primary key', 'value varchar(255) not null']),
  ...table('sluice_tenants', ['domain varchar(255) not null primary key', 'created_ms bigint not null']),
  ...table('sluice_users', [
    'id varchar(36) not null primary key',
    'tenant varchar(255) not null',
    'name varchar(255) not null',
    'name_key varchar(255) not null',
    'password_hash varchar(255) not null',
    `claims ${text} not null`,
    'is_locked smallint not null',
    'created_ms bigint not null',
    'constraint sluice_users_name unique (tenant, name_key)',
    'constraint sluice_users_tenant foreign key (tenant) references sluice_tenants (domain)',
  ]),
  ...table('sluice_roles', [
    'tenant varchar(255) not null',
    'name varchar(255) not null',
    'primary key (tenant, name)',
    'constraint sluice_roles_tenant foreign key (tenant) references sluice_tenants (domain)',
  ]),
  ...table('sluice_user_roles', [
    'user_id varchar(36) not null',
    'tenant varchar(255) not null',
    'role varchar(255) not null',
    'primary key (user_id, role)',
    'constraint sluice_user_roles_user foreign key (user_id) references sluice_users (id) on delete cascade',
    'constraint sluice_user_roles_role foreign key (tenant, role) references sluice_roles (tenant, name)',
  ]),
]

const APIM_V1: Migration = ddl => [...applicationTables(ddl), ...tokenTables(ddl)]

function applicationTables({ text, table }: DdlSyntax): readonly string[] {
  return [
    ...table('sluice_applications', [
      'id varchar(36) not null primary key',
      'tenant varchar(255) not null',
      'owner varchar(255) not null',
      'name varchar(255) not null',
      `description ${text} not null`,
      'tier varchar(255) not null',
      `attributes ${text} not null`,
      'token_type varchar(8) not null',
      'created_ms bigint not null',
      'constraint sluice_applications_name unique (tenant, owner, name)',
    ]),
    ...table(
      'sluice_clients',
      [
        'consumer_key varchar(255) not null primary key',
        'name varchar(255) not null',
        'application_id varchar(36)',
        'key_type varchar(16) not null',
        'owner varchar(255) not null',
        'tenant varchar(255) not null',
        `grants ${text} not null`,
        `redirect_uris ${text} not null`,
        'is_public smallint not null',
        'token_type varchar(8) not null',
        'validity_s bigint not null',
        'secret_hash varchar(255) not null',
        'created_ms bigint not null',
        'constraint sluice_clients_application foreign key (application_id) references sluice_applications (id)',
      ],
      ['application_id'],
    ),
    ...table(
      'sluice_subscriptions',
      [
        'id varchar(36) not null primary key',
        'application_id varchar(36) not null',
        'api_name varchar(255) not null',
        'api_version varchar(255) not null',
        'tier varchar(255) not null',
        'status varchar(32) not null',
        'created_ms bigint not null',
        'constraint sluice_subscriptions_api unique (application_id, api_name, api_version)',
        'constraint sluice_subscriptions_application foreign key (application_id) references sluice_applications (id)',
      ],
      ['api_name'],
    ),
  ]
}

const TOKEN_COLUMNS = [
  'kind varchar(16) not null',
  'revocation_key varchar(512) not null',
  'consumer_key varchar(255) not null',
  'user_name varchar(255) not null',
  'tenant varchar(255) not null',
  'is_application smallint not null',
]

const TOKEN_TIMES = ['issued_ms bigint not null', 'expires_ms bigint not null', 'state varchar(16) not null']

function tokenTables({ text, table }: DdlSyntax): readonly string[] {
  return [
    ...table(
      'sluice_families',
      ['family varchar(64) not null primary key', 'state varchar(16) not null', 'expires_ms bigint not null'],
      ['expires_ms'],
    ),
    ...table(
      'sluice_tokens',
      [
        'id varchar(36) not null primary key',
        'hash varchar(43) not null',
        ...TOKEN_COLUMNS,
        `scopes ${text} not null`,
        ...TOKEN_TIMES,
        'family varchar(64) not null',
        `data ${text} not null`,
        `kept ${text} not null`,
        'constraint sluice_tokens_hash unique (hash)',
      ],
      ['consumer_key', 'family', 'expires_ms', 'user_name'],
    ),
    ...table(
      'sluice_token_audit',
      [
        'id varchar(36) not null primary key',
        ...TOKEN_COLUMNS,
        `scopes ${text} not null`,
        ...TOKEN_TIMES,
        'family varchar(64) not null',
      ],
      ['expires_ms'],
    ),
    ...table(
      'sluice_revocations',
      [
        'revocation_key varchar(512) not null primary key',
        'consumer_key varchar(255) not null',
        'expires_ms bigint not null',
      ],
      ['expires_ms'],
    ),
    ...table('sluice_change_counter', ['id smallint not null primary key', 'value bigint not null']),
    ...table(
      'sluice_changes',
      [
        'seq bigint not null primary key',
        'node varchar(36) not null',
        'made_ms bigint not null',
        'kind varchar(16) not null',
        'ref varchar(512) not null',
      ],
      ['made_ms'],
    ),
    'insert into sluice_change_counter (id, value) select 1, 0 from (select 1 as one) as unit' +
      ' where not exists (select id from sluice_change_counter)',
  ]
}

/** Tables that nodes of one database share beside its entities. */
const APIM_V2: Migration = ({ text, table }) => [
  ...table('sluice_signing_keys', [
    'kid varchar(64) not null primary key',
    'created_ms bigint not null',
    'signs_from_ms bigint not null',
    'until_ms bigint not null',
    `private_key ${text} not null`,
  ]),
  ...table('sluice_nodes', [
    'node varchar(36) not null primary key',
    `issuer ${text} not null`,
    'seen_ms bigint not null',
  ]),
]

/** Clients by dynamic registration (RFC 7591), and requests that wait for approval. */
const APIM_V3: Migration = ({ text, table }) => [
  ...table('sluice_client_registrations', [
    'consumer_key varchar(255) not null primary key',
    'token_hash varchar(43) not null',
    'auth_method varchar(32) not null',
    `logout_uris ${text} not null`,
    'created_ms bigint not null',
    'constraint sluice_client_registrations_client foreign key (consumer_key)' +
      ' references sluice_clients (consumer_key) on delete cascade',
  ]),
  ...table(
    'sluice_workflows',
    [
      'id varchar(36) not null primary key',
      'kind varchar(64) not null',
      'application_id varchar(36) not null',
      'subject varchar(64) not null',
      'tenant varchar(255) not null',
      'requester varchar(255) not null',
      'status varchar(16) not null',
      `properties ${text} not null`,
      `description ${text} not null`,
      'created_ms bigint not null',
      'updated_ms bigint not null',
      'is_sent smallint not null',
      'tried_ms bigint not null',
      'constraint sluice_workflows_subject unique (application_id, kind, subject)',
      'constraint sluice_workflows_application foreign key (application_id)' +
        ' references sluice_applications (id) on delete cascade',
    ],
    ['status', 'subject'],
  ),
]

/** The issuer of all nodes, in one row. */
const APIM_V4: Migration = ({ text, table }) =>
  table('sluice_issuer', ['id smallint not null primary key', `issuer ${text} not null`])

/** Throttling policies and deny policies. */
const APIM_V5: Migration = ({ text, table }) => [
  ...table('sluice_policies', [
    'id varchar(36) not null primary key',
    'level varchar(16) not null',
    'name varchar(255) not null',
    `body ${text} not null`,
    'constraint sluice_policies_name unique (level, name)',
  ]),
  ...table('sluice_deny_policies', [
    'id varchar(36) not null primary key',
    'kind varchar(16) not null',
    'value varchar(700) not null',
    'is_inverted smallint not null',
    'is_enabled smallint not null',
    'constraint sluice_deny_policies_value unique (kind, value, is_inverted)',
  ]),
]

export const MIGRATIONS: Readonly<Record<SchemaPart, readonly Migration[]>> = {
  shared: [SHARED_V1],
  apim: [APIM_V1, APIM_V2, APIM_V3, APIM_V4, APIM_V5],
}
