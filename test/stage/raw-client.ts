export { type Connection as RawClient, connectTo as rawClient, requestText } from './connection.ts';
