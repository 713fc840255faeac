-- What organizations decide about tokens and networks, and the handles of people and organizations.
SELECT 1;
