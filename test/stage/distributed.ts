/** Whether the tests run with SVC_POSTGRES_ENGINE=distributed, with a PostgreSQL that behaves like such an engine. */
export const isDistributed = /^(distributed|citus)$/.test(process.env.TEST_POSTGRES_ENGINE ?? '');

/** One in this many writes of users conflicts with another. */
const CONFLICTS = 10;

/**
 * Gives a PostgreSQL database the behaviour of a distributed engine: transactions are serializable, some writes of the
 * service end in a conflict (40001), and a statement is cancelled when its client disconnects.
 */
export const distributedHabits = (database: string): readonly string[] => [
  `ALTER DATABASE ${database} SET default_transaction_isolation = serializable`,
  `ALTER DATABASE ${database} SET client_connection_check_interval = '500ms'`,
  'CREATE SCHEMA habits',
  `CREATE FUNCTION habits.conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
     IF random() < 1.0 / ${CONFLICTS} AND current_setting('application_name') = 'user-management-service' THEN
       RAISE EXCEPTION 'restart transaction' USING ERRCODE = '40001';
     END IF;
     RETURN NULL;
   END $$`,
  `CREATE FUNCTION habits.adopt() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
     IF to_regclass('public.users') IS NOT NULL THEN
       CREATE OR REPLACE TRIGGER conflict BEFORE INSERT OR UPDATE OR DELETE ON public.users
         FOR EACH STATEMENT EXECUTE FUNCTION habits.conflict();
     END IF;
   END $$`,
  "CREATE EVENT TRIGGER adopt ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION habits.adopt()",
];
